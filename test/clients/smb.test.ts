/** Clients of SMB that others wrote, as Debian packages them: smbclient in all dialects, ciphers and signers, impacket, Samba's Python library, nmap. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { debianPython, noImpacket, noNmap, noSambaLibrary, noSmbclient } from '../support/installed-tools.ts';
import { runClient } from '../support/run-client.ts';
import { account, accountKey, serverFor } from '../support/test-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-smbclient-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const running = serverFor('LMDB');
const port = () => new URL(running.server.smbUrl).port;

/** What the commands print. smbclient ends with 0 although a command of several has failed. */
async function smbclient(share: string, commands: string, ...flags: string[]): Promise<string> {
  const words = [`//127.0.0.1/${share}`, '-p', port(), '-U', `${account}%${accountKey}`, ...flags, '-c', commands];
  const { stdout, stderr } = await runClient('smbclient', words, { cwd: folder });
  return stdout + stderr;
}

const variants: [title: string, flags: string[]][] = [
  ...['SMB2_10', 'SMB3_00', 'SMB3_02', 'SMB3_11'].flatMap((dialect): [string, string[]][] => [
    [`${dialect}, unsigned`, ['-m', dialect, '--client-protection=off']],
    [`${dialect}, signed`, ['-m', dialect, '--client-protection=sign']],
  ]),
  ...['SMB3_00', 'SMB3_02'].map((dialect): [string, string[]] => [
    `${dialect}, encrypted`,
    ['-m', dialect, '--client-protection=encrypt'],
  ]),
  ...['AES-128-GCM', 'AES-128-CCM', 'AES-256-GCM', 'AES-256-CCM'].map((cipher): [string, string[]] => [
    cipher,
    ['--client-protection=encrypt', `--option=client smb3 encryption algorithms=${cipher}`],
  ]),
  ...['AES-128-GMAC', 'AES-128-CMAC', 'HMAC-SHA256'].map((signer): [string, string[]] => [
    signer,
    ['--client-protection=sign', `--option=client smb3 signing algorithms=${signer}`],
  ]),
];

describe.skipIf(noSmbclient)(`smbclient${noSmbclient ? ` (${noSmbclient})` : ''}`, () => {
  it.each(variants)('writes what REST reads, and reads what REST wrote: %s', async (_title, flags) => {
    const share = await running.newShare();
    const bytes = randomBytes(3_000_000);
    writeFileSync(join(folder, 'up'), bytes);
    const file = share.rootDirectoryClient.getFileClient('down');
    await file.create(bytes.length);
    await file.uploadRange(bytes, 0, bytes.length);
    expect(await smbclient(share.name, 'put up; get down', ...flags)).not.toContain('NT_STATUS');
    expect(digest(await share.rootDirectoryClient.getFileClient('up').downloadToBuffer())).toBe(digest(bytes));
    expect(digest(readFileSync(join(folder, 'down')))).toBe(digest(bytes));
  });

  it('renames, deletes, makes and removes directories, and sets attributes', async () => {
    const share = await running.newShare();
    writeFileSync(join(folder, 'note'), 'text');
    const commands = 'mkdir d; cd d; put note; rename note other; setmode other +rh; allinfo other; du; ls';
    const printed = await smbclient(share.name, commands);
    expect(printed.replace(/NT_STATUS_\w+ getting alt name/, '')).not.toContain('NT_STATUS');
    expect(printed).toMatch(/attributes: R?H?A? ?.*\(2[0-9a-f]\)|attributes: .*RH/);
    const other = share.getDirectoryClient('d').getFileClient('other');
    expect((await other.getProperties()).fileAttributes).toMatch(/ReadOnly.*Hidden/);
    const removal = await smbclient(share.name, 'setmode d/other -rh; del d/other; rmdir d; ls');
    expect(removal).not.toContain('NT_STATUS');
    expect(await share.getDirectoryClient('d').exists()).toBe(false);
  });

  it('copies a tree of 1,000 files up and down, and counts its bytes', async () => {
    const share = await running.newShare();
    const names = Array.from({ length: 1_000 }, (_, number) => join(`tree${number % 5}`, `file ${number}.txt`));
    for (let number = 0; number < 5; number++) mkdirSync(join(folder, 'up-tree', `tree${number}`), { recursive: true });
    mkdirSync(join(folder, 'down-tree'));
    for (const name of names) writeFileSync(join(folder, 'up-tree', name), `content of ${name}`);
    expect(await smbclient(share.name, 'recurse; prompt; lcd up-tree; mput *')).not.toContain('NT_STATUS');
    expect(await smbclient(share.name, 'recurse; prompt; lcd down-tree; mget *')).not.toContain('NT_STATUS');
    for (const name of names) {
      expect(readFileSync(join(folder, 'down-tree', name), 'utf8')).toBe(`content of ${name}`);
    }
    const bytes = names.reduce((sum, name) => sum + `content of ${name}`.length, 0);
    expect(await smbclient(share.name, 'recurse; du *')).toContain(`Total number of bytes: ${bytes}`);
    expect(await smbclient(share.name, 'recurse; ls *')).toMatch(/file 999\.txt/);
    expect(await smbclient(share.name, 'deltree tree*; ls')).not.toMatch(/NT_STATUS|tree/);
  }, 120_000);

  it('lists the shares of the account', async () => {
    const share = await running.newShare();
    const words = ['-L', '//127.0.0.1', '-p', port(), '-U', `${account}%${accountKey}`];
    const { stdout } = await runClient('smbclient', words);
    expect(stdout).toMatch(new RegExp(`${share.name}\\s+Disk`));
    expect(stdout).toMatch(/IPC\$\s+IPC/);
  });

  it('is refused with a wrong key, as nobody, and for a share that does not exist', async () => {
    const share = await running.newShare();
    const attempt = (name: string, ...words: string[]) =>
      runClient('smbclient', [`//127.0.0.1/${name}`, '-p', port(), ...words, '-c', 'ls']).then(
        () => 'success',
        ({ stdout, stderr }) => /NT_STATUS_\w+/.exec(stdout + stderr)?.[0],
      );
    expect(await attempt(share.name, '-U', `${account}%wrong`)).toBe('NT_STATUS_LOGON_FAILURE');
    expect(await attempt(share.name, '-N')).toMatch(/NT_STATUS_(?:ACCESS_DENIED|LOGON_FAILURE)/);
    expect(await attempt('no-such-share', '-U', `${account}%${accountKey}`)).toBe('NT_STATUS_BAD_NETWORK_NAME');
    expect(await attempt(share.name, '-U', `AZURE\\${account.toUpperCase()}%${accountKey}`)).toBe('success');
  });
});

describe.skipIf(noImpacket)(`impacket${noImpacket ? ` (${noImpacket})` : ''}`, () => {
  it('works in SMB 2.1 and, encrypted, in SMB 3.0, after a negotiation of SMB1', async () => {
    const share = await running.newShare();
    const script = join(import.meta.dirname, '..', 'malformed-packets', 'impacket-session.py');
    const { stderr } = await runClient(debianPython, [script, port(), account, accountKey, share.name]);
    expect(stderr).toBe('');
  });
});

describe.skipIf(noSambaLibrary)(`Samba's Python library${noSambaLibrary ? ` (${noSambaLibrary})` : ''}`, () => {
  it('creates, lists, renames and deletes, and reads and sets permissions', async () => {
    const program = join(import.meta.dirname, 'samba-library.mjs');
    const { stdout } = await runClient('unshare', ['--net', process.execPath, program]);
    expect(stdout).toContain('all is as it should be');
  });
});

describe.skipIf(noNmap)(`nmap${noNmap ? ` (${noNmap})` : ''}`, () => {
  it('finds the dialects, and signing that is offered and not required', async () => {
    const scripts = 'smb-protocols,smb2-security-mode,smb2-capabilities,smb2-time';
    const words = ['-Pn', '-p', port(), '--script', scripts, '--script-args', `smbport=${port()}`, '127.0.0.1'];
    const { stdout } = await runClient('nmap', words, { timeout: 120_000 });
    expect(stdout).toMatch(/smb-protocols: \n\| {3}dialects: \n\| {5}210\n\| {5}300\n\| {5}302\n\|_? {4}311\n/);
    expect(stdout).toContain('Message signing enabled but not required');
    expect(stdout).toMatch(/smb2-time:/);
  });
});

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
