/** The package as npm would publish it, installed into an empty folder. */
import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TableClient } from '@azure/data-tables';
import { BlobServiceClient } from '@azure/storage-blob';
import { QueueServiceClient } from '@azure/storage-queue';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Program, runProgram } from '../support/child-program.ts';
import { machinery, root } from '../support/repository-copy.ts';

const run = promisify(execFile);
const READY = 'successfully listening at ';
const windows = process.platform === 'win32';

const packed = await pack();

describe('The package', () => {
  const { bin, dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

  it('is built when it is packed, and holds what runs, one file of types and the documentation', () => {
    console.log(`${packed.files.length} files, ${packed.size} bytes, ${packed.unpackedSize} bytes unpacked`);
    const usual =
      /^(dist\/.*\.c?js|dist\/licences\.txt|docs\/.*\.md|docs\/grafana-dashboard\.json|package\.json|README\.md|LICENSE|CHANGELOG\.md)$/;
    expect(packed.files.filter((file) => !usual.test(file))).toEqual(['dist/index.d.cts', 'dist/index.d.ts']);
    expect(packed.files.filter((file) => /\.test\.|\.map$|conformance|docs\/adr/.test(file))).toEqual([]);
  });

  it('has types that import nothing, so that nothing internal is in them', () => {
    const types = readFileSync(join(root, 'dist/index.d.ts'), 'utf8');
    expect(types).not.toMatch(/\bfrom '|\bimport\(/);
    expect([...types.matchAll(/^export (?:declare )?\w+ (\w+)/gm)].map(([, name]) => name).sort()).toEqual([
      ...[
        'Account',
        'AccountSettings',
        'Authority',
        'CannotListen',
        'CertificateFiles',
        'CheckProgress',
        'CheckResult',
        'Endpoint',
      ],
      ...[
        'HoldfastServer',
        'LogFormat',
        'LogLevel',
        'LogOptions',
        'StartError',
        'StartOptions',
        'Where',
        'check',
        'start',
      ],
    ]);
  });

  it('is small', () => {
    expect(packed.size).toBeLessThan(1_500_000);
  });

  it('holds its executables, which begin with the line that starts Node', () => {
    expect(Object.keys(bin)).toEqual(['holdfast', 'azurite', 'azurite-blob', 'azurite-queue', 'azurite-table']);
    for (const file of Object.values<string>(bin)) {
      expect(packed.files).toContain(file);
      expect(readFileSync(join(root, file), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
    }
  });

  it('holds what it took from other packages with their licences', () => {
    const licences = readFileSync(join(root, 'dist/licences.txt'), 'utf8');
    expect(packed.files).toContain('dist/licences.txt');
    expect(licences).toMatch(/^pino \d+\.\d+\.\d+\n\nThe MIT License/m);
    expect(licences).toMatch(/^yaml \d+\.\d+\.\d+\n\nCopyright/m);
    expect(licences).toMatch(/^sonic-boom \d+\.\d+\.\d+\n\nMIT License/m);
  });

  it('brings along no package that it does not use', () => {
    const sources = packed.files
      .filter((file) => file.endsWith('.js'))
      .map((file) => readFileSync(join(root, file), 'utf8'));
    const isUsed = (name: string) => sources.some((text) => text.includes(`"${name}"`));
    expect(Object.keys({ ...dependencies, ...peerDependencies }).filter((name) => !isUsed(name))).toEqual([]);
  });
});

describe('The installed package', { timeout: 60_000 }, () => {
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-package-'));
    writeFileSync(join(folder, 'package.json'), '{ "private": true }');
    // The registry is the one that this repository uses.
    cpSync(join(root, '.npmrc'), join(folder, '.npmrc'));
    const quickly = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
    await npm(folder, 'install', packed.tarball, 'jest@30', ...quickly);
    symlinkSync(join(root, 'node_modules', '@azure'), join(folder, 'node_modules', '@azure'), 'junction');
  }, 120_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

  it.each([
    ['azurite-blob', '--inMemoryPersistence'],
    ['azurite', '--queueHost', '127.0.0.1'],
    ['azurite-queue', '--inMemoryPersistence', '--queuePort', '0'],
    ['azurite-table', '--inMemoryPersistence', '--tablePort', '0'],
    ['holdfast', '--location', 'data'],
  ])('starts by npx %s, serves the SDK, and stops when npx is ended', async (name, ...words) => {
    expect(existsSync(join(folder, 'node_modules', '.bin', windows ? `${name}.cmd` : name))).toBe(true);
    const program = npx(folder, name, '--blobPort', '0', ...words);
    await program.printed(READY);
    const connection = /connection string {2}(\S+)/.exec(program.stdout())?.[1] ?? '';
    const served = (await Promise.all([blobAt, queueAt, tableAt].map((each) => each(connection)))).join('');
    expect(served).toBe({ 'azurite-blob': 'b', 'azurite-queue': 'q', 'azurite-table': 't' }[name] ?? 'bqt');
    program.kill('SIGTERM');
    // npm ends by the signal that it got; what it started has closed its pipes by then.
    await program.ended;
    if (name !== 'holdfast' && !windows) expect(program.stdout()).toMatch(/successfully closed\n$/);
    expect(existsSync(join(folder, 'data', 'admin.json'))).toBe(false);
  });

  it.skipIf(windows).each(['azurite-blob', 'holdfast'])('ends %s with 0 at SIGTERM', async (name) => {
    const words = ['--blobPort', '0', '--inMemoryPersistence'];
    const program = runProgram(join(folder, 'node_modules', '.bin', name), words, { cwd: folder });
    await program.printed(READY);
    program.kill('SIGTERM');
    expect(await program.ended).toEqual({ code: 0, signal: null });
  });

  it.each([
    ['imports', 'program.mjs', "import { start } from 'holdfast';"],
    ['requires', 'program.cjs', "const { start } = require('holdfast');"],
  ])('gives start to a program that %s it', async (_, file, loading) => {
    writeFileSync(
      join(folder, file),
      `${loading}
(async () => {
  const server = await start({ location: 'data of a program', blobPort: 0 });
  console.log(server.connectionString);
  await new Promise((resolve) => process.once('disconnect', resolve));
  await server.stop();
})();`,
    );
    const program = fork(join(folder, file), { cwd: folder, silent: true });
    onTestFinished(() => void program.kill('SIGKILL'));
    const [printed] = await once(program.stdout!, 'data');
    expect(await blobAt(String(printed).trim())).toBe('b');
    program.disconnect();
    expect(await once(program, 'exit')).toEqual([0, null]);
    rmSync(join(folder, 'data of a program'), { recursive: true });
  });

  it('runs in Jest, with data in memory and in a folder, and leaves nothing open', async () => {
    writeFileSync(
      join(folder, 'blob.test.js'),
      `const { BlobServiceClient } = require('@azure/storage-blob');
const { start, StartError } = require('holdfast');
test.each([{ inMemory: true }, { location: 'data of Jest' }])('%j', async (options) => {
  const server = await start({ ...options, blobPort: 0 });
  try {
    const container = BlobServiceClient.fromConnectionString(server.connectionString).getContainerClient('jest');
    await container.create();
    const bytes = Buffer.alloc(200_000, 'x');
    await container.getBlockBlobClient('blob').uploadData(bytes);
    expect((await container.getBlockBlobClient('blob').downloadToBuffer()).equals(bytes)).toBe(true);
    await expect(start({ blobPort: -1 })).rejects.toBeInstanceOf(StartError);
  } finally {
    await server.stop();
  }
});`,
    );
    const jest = runProgram(process.execPath, [join(folder, 'node_modules', 'jest', 'bin', 'jest.js')], {
      cwd: folder,
      // The worker of this test is not Jest's.
      env: { NODE_ENV: 'test', JEST_WORKER_ID: '' },
    });
    expect({ ...(await jest.ended), said: jest.stderr() }).toMatchObject({
      code: 0,
      said: expect.stringMatching(/Tests: +2 passed/),
    });
    expect(jest.stderr()).not.toContain('did not exit');
  });

  it.each(['program.mts', 'program.cts'])('has types for %s', async (file) => {
    const program = `import { check, type HoldfastServer, type StartOptions, start } from 'holdfast';
const options: StartOptions = { inMemory: true, blobPort: 0, log: { level: 'warn' } };
export async function run(): Promise<string> {
  const server: HoldfastServer = await start(options);
  await server.clock.advance(1);
  await server.stop();
  const { findings } = await check('data');
  // @ts-expect-error: a wrong option does not compile.
  await start({ inMemoryPersistence: true });
  return server.connectionString + findings.join();
}
`;
    writeFileSync(join(folder, file), program);
    const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
    // Neither types of Node nor the check of libraries left out: the declarations stand for themselves.
    const options = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--target', 'es2022', '--types', ''];
    const words = [compiler, file, '--ignoreConfig', '--module', 'nodenext', ...options];
    await run(process.execPath, words, { cwd: folder }).catch(({ stdout }) => expect(stdout).toBe(''));
  });

  it('names the package to install when PostgreSQL is asked for', async () => {
    const words = ['--partition', 'postgres://127.0.0.1/none', '--extents', 'bytes', '--blobPort', '0'];
    const program = runProgram(
      process.execPath,
      [join(folder, 'node_modules/holdfast', 'dist/bin/holdfast.js'), ...words],
      {
        cwd: folder,
      },
    );
    expect((await program.ended).code).toBe(1);
    expect(program.stderr()).toMatch(/^holdfast: .*: npm install pg\n$/);
  });
});

/** These use a service, and give its letter; or nothing where the string does not name it. */
async function blobAt(connection: string): Promise<string> {
  if (!connection.includes('BlobEndpoint=')) return '';
  const container = BlobServiceClient.fromConnectionString(connection).getContainerClient('first');
  await container.create();
  await container.getBlockBlobClient('blob').upload('Hello', 5);
  expect((await container.getBlockBlobClient('blob').downloadToBuffer()).toString()).toBe('Hello');
  return 'b';
}

async function queueAt(connection: string): Promise<string> {
  if (!connection.includes('QueueEndpoint=')) return '';
  const queue = QueueServiceClient.fromConnectionString(connection).getQueueClient('first');
  await queue.create();
  await queue.sendMessage('Hello');
  expect((await queue.receiveMessages()).receivedMessageItems).toMatchObject([{ messageText: 'Hello' }]);
  return 'q';
}

async function tableAt(connection: string): Promise<string> {
  if (!connection.includes('TableEndpoint=')) return '';
  const table = TableClient.fromConnectionString(connection, 'first', { allowInsecureConnection: true });
  await table.createTable();
  await table.createEntity({ partitionKey: 'a', rowKey: 'b', says: 'Hello' });
  expect(await table.getEntity('a', 'b')).toMatchObject({ says: 'Hello' });
  return 't';
}

interface Packed {
  readonly tarball: string;
  readonly files: readonly string[];
  readonly size: number;
  readonly unpackedSize: number;
}

/** From a fresh clone, in which nothing is built. */
async function pack(): Promise<Packed> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-pack-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const clone = join(folder, 'clone');
  for (const each of [...machinery, 'src', 'docs', 'README.md', 'LICENSE', 'CHANGELOG.md'])
    cpSync(join(root, each), join(clone, each), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'), 'junction');
  const stdout = await npm(clone, 'pack', '--json', '--pack-destination', folder);
  const [{ filename, files, unpackedSize }] = [JSON.parse(stdout)].flat();
  const tarball = join(folder, filename);
  return {
    tarball,
    files: files.map(({ path }: { path: string }) => path),
    size: statSync(tarball).size,
    unpackedSize,
  };
}

/** npm is a script that Windows starts only through a shell, which takes no folder with a space unquoted. */
async function npm(cwd: string, ...words: string[]): Promise<string> {
  const { npm_lifecycle_event: _, ...env } = process.env;
  const cli = process.env.npm_execpath?.endsWith('npm-cli.js') ? process.env.npm_execpath : undefined;
  const { stdout } = cli
    ? await run(process.execPath, [cli, ...words], { cwd, env })
    : await run('npm', words, { cwd, env, shell: windows });
  return stdout;
}

function npx(cwd: string, ...words: string[]): Program {
  return windows
    ? runProgram('cmd.exe', ['/d', '/s', '/c', 'npx', ...words], { cwd })
    : runProgram('npx', words, { cwd });
}
