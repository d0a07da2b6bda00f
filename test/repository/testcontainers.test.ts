/**
 * How Testcontainers' modules for Azurite start an image and wait for it, without Docker: their command lines, the log lines and ports that they
 * wait for, and the owners and modes of the files that they copy, as root and as another user.
 */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { BlobServiceClient } from '@azure/storage-blob';
import { beforeEach, describe, expect, it } from 'vitest';
import { ensureSelfSignedCertificate } from '../../src/server/tls/self-signed.ts';
import { type Program, runProgram } from '../support/child-program.ts';
import { PFX_PASSWORD, pfx } from '../support/pfx.ts';
import { newFolder, root } from '../support/repository-copy.ts';
import { accountKey } from '../support/test-server.ts';

const HOSTS = ['--blobHost', '0.0.0.0', '--queueHost', '0.0.0.0', '--tableHost', '0.0.0.0'];
const SERVICES = ['Blob', 'Queue', 'Table'];
const USER = 1000;
const notRoot = process.getuid?.() === 0 ? undefined : 'only root can start programs as another user';
const unreadable = notRoot ?? userCannotRead(join(root, 'dist', 'bin', 'azurite.js'));

interface Module {
  readonly name: string;
  readonly words: readonly string[];
  readonly waits: 'for log lines' | 'for ports' | 'for ports and log lines' | 'for the first port';
  /** By AZURITE_ACCOUNTS. */
  readonly account?: string;
}

/** The ports, which the module for Node names too, are free ones here. */
const modules: Module[] = [
  { name: 'Node', words: HOSTS, waits: 'for log lines' },
  {
    name: 'Node in memory, with an account of its own',
    words: [...HOSTS, '--inMemoryPersistence', '--extentMemoryLimit', '64', '--skipApiVersionCheck'],
    waits: 'for log lines',
    account: 'another',
  },
  { name: 'Java', words: HOSTS, waits: 'for ports' },
  { name: 'Go', words: HOSTS, waits: 'for ports and log lines' },
  {
    name: 'Go in memory',
    words: ['--inMemoryPersistence', '--extentMemoryLimit', '64.000000', ...HOSTS],
    waits: 'for ports and log lines',
  },
  { name: '.NET', words: HOSTS, waits: 'for log lines' },
  { name: '.NET in memory', words: [...HOSTS, '--inMemoryPersistence'], waits: 'for log lines' },
  { name: 'Python', words: imageCommand(), waits: 'for the first port', account: 'devstoreaccount1' },
];

describe.each([
  ['root', 0, notRoot],
  ['another user', USER, unreadable],
] as const)('As %s', (_, uid, missing) => {
  beforeEach(({ skip }) => skip(missing !== undefined, missing));

  it.each(modules)('the module for $name starts the image', async ({ words, waits, account }) => {
    const program = azurite(volume(), words, uid, account ? { AZURITE_ACCOUNTS: `${account}:${accountKey}` } : {});
    if (waits.endsWith('log lines'))
      for (const service of SERVICES) await program.printed(`${service} service is successfully listening`);
    if (waits.includes('port')) await portsOpen(program, waits === 'for the first port' ? ['Blob'] : SERVICES);
    await useBlobs(program, account);
    program.kill('SIGTERM');
    expect(await program.ended).toEqual({ code: 0, signal: null });
  });

  it.each([
    ['', []],
    [' and OAuth', ['--oauth', 'basic']],
  ])('withSsl works with a PFX file of root that everybody can read%s', async (_name, more) => {
    const file = join(sharedFolder(), 'cert.pfx');
    writeFileSync(file, pfx, { mode: 0o644 });
    const program = azurite(volume(), [...HOSTS, '--cert', file, '--pwd', PFX_PASSWORD, ...more], uid);
    await answersHttps(program);
  });
});

describe('withSsl', () => {
  beforeEach(({ skip }) => skip(unreadable !== undefined, unreadable));

  it('works as root with a key of root that nobody else can read', async () => {
    const program = azurite(volume(), [...HOSTS, ...(await copiedCertificate(0))], 0);
    await answersHttps(program);
    expect(program.stderr()).toBe('');
  });

  it('says as another user which file cannot be read, and works if the file is that of the user', async () => {
    const refused = azurite(volume(), [...HOSTS, ...(await copiedCertificate(0))], USER);
    expect((await refused.ended).code).toBe(1);
    expect(refused.stderr()).toMatch(/^azurite: .*--key, .*key\.pem \(EACCES\): make it readable for the user .*\n$/);
    await answersHttps(azurite(volume(), [...HOSTS, ...(await copiedCertificate(USER))], USER));
  });
});

describe('A folder of the host that belongs to root', () => {
  beforeEach(({ skip }) => skip(unreadable !== undefined, unreadable));

  it('is served as root, and refused in one line as another user', async () => {
    const folder = newFolder();
    mkdirSync(join(folder, 'mounted'), { mode: 0o755 });
    chmodSync(folder, 0o755);
    const words = [...HOSTS, '--location', join(folder, 'mounted')];
    const refused = azurite(volume(), words, USER);
    expect((await refused.ended).code).toBe(1);
    expect(refused.stderr()).toMatch(/^azurite: Cannot write .*mounted.* \(EACCES.*\n$/);
    const program = azurite(volume(), words, 0);
    await program.printed('Table service is successfully listening');
    await useBlobs(program);
  });
});

/** As the image has /data: every user may write. */
function volume(): string {
  const folder = newFolder();
  chmodSync(folder, 0o1777);
  return folder;
}

function azurite(folder: string, words: readonly string[], uid: number, env: Record<string, string> = {}): Program {
  const ports = SERVICES.flatMap((service) => [`--${service.toLowerCase()}Port`, '0']);
  const program = [join(root, 'dist', 'bin', 'azurite.js'), ...words, ...ports];
  return runProgram(process.execPath, program, { cwd: folder, uid, env: { HOME: folder, ...env } });
}

/** What the image runs if nobody names a command; /data is its working directory. */
function imageCommand(): string[] {
  const [, command = ''] = /^CMD (\[.*\])$/m.exec(readFileSync(join(root, 'Dockerfile'), 'utf8')) ?? [];
  const [, ...words] = JSON.parse(command) as string[];
  return words.map((word) => (word === '/data' ? '.' : word));
}

function sharedFolder(): string {
  const folder = newFolder();
  chmodSync(folder, 0o755);
  return folder;
}

/** As docker cp puts files there: with their owner and mode, in a folder that everybody can search. */
async function copiedCertificate(owner: number): Promise<string[]> {
  const folder = sharedFolder();
  const made = ensureSelfSignedCertificate({ folder: undefined, hosts: ['127.0.0.1'], now: new Date() });
  const tls = (await made).tls as { cert: string; key: string };
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  writeFileSync(cert, tls.cert, { mode: 0o644 });
  writeFileSync(key, tls.key, { mode: 0o600 });
  for (const file of [cert, key]) chownSync(file, owner, owner);
  return ['--cert', cert, '--key', key];
}

/** From outside, and as the modules for Java and Go look from inside: in the kernel's list of sockets. */
async function portsOpen(program: Program, services: readonly string[]): Promise<void> {
  await program.printed(`${services.at(-1)} service is successfully listening`);
  for (const service of services) {
    const port = Number(originOf(program, service).port);
    const socket = connect({ host: '127.0.0.1', port });
    await once(socket, 'connect');
    socket.destroy();
    if (!existsSync('/proc/net/tcp')) continue;
    const inside = spawnSync('/bin/sh', ['-c', `grep -i ':0*${port.toString(16)}' /proc/net/tcp*`]);
    expect(inside.status).toBe(0);
  }
}

async function answersHttps(program: Program): Promise<void> {
  await program.printed('Table service is successfully listening at https://');
  for (const service of SERVICES) {
    const request = get(originOf(program, service), { rejectUnauthorized: false });
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    answer.resume();
    expect(answer.headers['x-ms-request-id']).toBeDefined();
  }
}

function originOf(program: Program, service: string): URL {
  const [, origin = ''] =
    new RegExp(`${service} service is successfully listening at (\\S+)`).exec(program.stdout()) ?? [];
  return new URL(origin.replace('0.0.0.0', '127.0.0.1'));
}

async function useBlobs(program: Program, account = 'devstoreaccount1'): Promise<void> {
  const { origin } = originOf(program, 'Blob');
  const connection = `DefaultEndpointsProtocol=http;AccountName=${account};AccountKey=${accountKey};BlobEndpoint=${origin}/${account};`;
  const container = BlobServiceClient.fromConnectionString(connection).getContainerClient('one');
  await container.create();
  await container.getBlockBlobClient('blob').upload('Hello', 5);
}

function userCannotRead(file: string): string | undefined {
  const { status } = spawnSync(process.execPath, ['-e', `require('fs').readFileSync(${JSON.stringify(file)})`], {
    ...{ uid: USER, gid: USER, stdio: 'ignore' },
  });
  return status === 0 ? undefined : 'another user cannot read this repository';
}
