/** smbclient and impacket sign in: every dialect, cipher and signature. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ShareServiceClient, StorageSharedKeyCredential } from '@azure/storage-file-share';
import { type HoldfastServer, start } from 'holdfast';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { debianPython, noImpacket, noSmbclient } from '../support/installed-tools.ts';
import { account, accountKey } from '../support/test-server.ts';

const run = promisify(execFile);

interface Finished {
  readonly code: number;
  readonly output: string;
}

async function program(command: string, words: readonly string[]): Promise<Finished> {
  try {
    const { stdout, stderr } = await run(command, words, { timeout: 60_000 });
    return { code: 0, output: stdout + stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, output: stdout + stderr };
  }
}

const portOf = (server: HoldfastServer) => new URL(server.smbUrl).port;

function smbclient(server: HoldfastServer, ...words: readonly string[]): Promise<Finished> {
  return program('smbclient', ['//127.0.0.1/photos', '-p', portOf(server), ...words]);
}

const user = `${account}%${accountKey}`;

async function startWithShare(options: Parameters<typeof start>[0] = {}): Promise<HoldfastServer> {
  const server = await start({ inMemory: true, blobPort: 0, ...options });
  const shares = new ShareServiceClient(server.fileUrl, new StorageSharedKeyCredential(account, accountKey));
  await shares.getShareClient('photos').create();
  return server;
}

describe.skipIf(noSmbclient)(`smbclient${noSmbclient ? ` (${noSmbclient})` : ''}`, () => {
  let server: HoldfastServer;
  beforeAll(async () => {
    server = await startWithShare();
  });
  afterAll(() => server.stop());

  const dialects = ['SMB2_10', 'SMB3_00', 'SMB3_02', 'SMB3_11'];
  const protections = ['off', 'sign', 'encrypt'];
  const pairs = dialects.flatMap((dialect) => protections.map((protection) => [dialect, protection] as const));
  it.each(pairs.filter(([dialect, protection]) => dialect !== 'SMB2_10' || protection !== 'encrypt'))(
    'connects by %s with protection: %s',
    async (dialect, protection) => {
      const words = ['-U', user, '-m', dialect, `--client-protection=${protection}`, '-c', 'mkdir d; ls; rmdir d'];
      expect(await smbclient(server, ...words)).toMatchObject({ code: 0, output: expect.stringMatching(/ d +D /) });
    },
  );

  it.each(['AES-128-CCM', 'AES-128-GCM', 'AES-256-CCM', 'AES-256-GCM'])('encrypts by %s', async (cipher) => {
    const option = `--option=client smb3 encryption algorithms=${cipher}`;
    const words = ['-U', user, '--client-protection=encrypt', option, '-c', 'ls'];
    expect(await smbclient(server, ...words)).toMatchObject({ code: 0 });
  });

  it.each(['AES-128-GMAC', 'AES-128-CMAC', 'HMAC-SHA256'])('signs by %s', async (signature) => {
    const option = `--option=client smb3 signing algorithms=${signature}`;
    expect(await smbclient(server, '-U', user, '--client-protection=sign', option, '-c', 'ls')).toMatchObject({
      code: 0,
    });
  });

  it.each([`AZURE\\${account}`, `localhost\\${account.toUpperCase()}`])('signs in as %s', async (name) => {
    expect(await smbclient(server, '-U', `${name}%${accountKey}`, '-c', 'ls')).toMatchObject({ code: 0 });
  });

  it.each([
    ['with a wrong password', ['-U', `${account}%wrong`], 'LOGON_FAILURE'],
    ['with an unknown name', ['-U', `nobody%${accountKey}`], 'LOGON_FAILURE'],
    ['without a name', ['-N', '-U', ''], 'LOGON_FAILURE'],
    ['by SMB1', ['-U', user, '-m', 'NT1', '--option=client min protocol=NT1'], ''],
    ['by 2.0.2', ['-U', user, '-m', 'SMB2_02', '--option=client min protocol=SMB2_02'], 'NOT_SUPPORTED'],
  ])('is refused %s', async (_title, words, status) => {
    const { code, output } = await smbclient(server, ...words, '-c', 'ls');
    expect(code).not.toBe(0);
    expect(output).toContain(status);
  });

  it('lists the shares of the account', async () => {
    const words = ['-L', '//127.0.0.1', '-p', portOf(server), '-U', user];
    const { code, output } = await program('smbclient', words);
    expect(code).toBe(0);
    expect(output).toMatch(/photos +Disk/);
    expect(output).toMatch(/IPC\$ +IPC/);
  });

  it('has to encrypt where the server requires it', async () => {
    const strict = await startWithShare({ smbRequireEncryption: true });
    try {
      expect(await smbclient(strict, '-U', user, '-c', 'ls')).toMatchObject({ code: 0 });
      expect((await smbclient(strict, '-U', user, '-m', 'SMB2_10', '-c', 'ls')).output).toContain('ACCESS_DENIED');
    } finally {
      await strict.stop();
    }
  });
});

const IMPACKET = `
import sys
from impacket.smbconnection import SMBConnection
for dialect in (None, 0x210, 0x300):
    client = SMBConnection('127.0.0.1', '127.0.0.1', sess_port=int(sys.argv[1]), preferredDialect=dialect)
    client.login(sys.argv[2], sys.argv[3])
    shares = [share['shi1_netname'][:-1] for share in client.listShares()]
    client.createDirectory('photos', 'made')
    client.deleteDirectory('photos', 'made')
    print(hex(client.getDialect()), shares)
    client.logoff()
`;

describe.skipIf(noImpacket)(`impacket${noImpacket ? ` (${noImpacket})` : ''}`, () => {
  it('begins with a NEGOTIATE of SMB1, lists shares, and encrypts by 3.0', async () => {
    const server = await startWithShare();
    try {
      const { code, output } = await program(debianPython, ['-c', IMPACKET, portOf(server), account, accountKey]);
      expect({ code, output }).toMatchObject({ code: 0 });
      expect(output.trim().split('\n')).toEqual([
        "0x300 ['photos', 'IPC$']",
        "0x210 ['photos', 'IPC$']",
        "0x300 ['photos', 'IPC$']",
      ]);
    } finally {
      await server.stop();
    }
  });
});
