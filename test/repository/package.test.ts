/** The package as npm would publish it, installed into an empty folder. */
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TableClient } from '@azure/data-tables';
import { BlobServiceClient } from '@azure/storage-blob';
import { QueueServiceClient } from '@azure/storage-queue';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Program, runProgram } from '../support/child-program.ts';
import { root } from '../support/repository-copy.ts';

const run = promisify(execFile);
const READY = 'successfully listening at ';
const windows = process.platform === 'win32';

const packed = await pack();

describe('The package', () => {
  const { bin, dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

  it('holds what runs and the documentation, no tests, no source maps, no suites for tests', () => {
    console.log(`${packed.files.length} files, ${packed.size} bytes, ${packed.unpackedSize} bytes unpacked`);
    const unexpected = packed.files.filter(
      (file) =>
        !/^(dist\/.*\.(js|d\.ts)|dist\/licences\.txt|docs\/.*\.md|package\.json|README\.md|LICENSE|CHANGELOG\.md)$/.test(
          file,
        ) || /\.test\.|\.map$|conformance/.test(file),
    );
    expect(unexpected).toEqual([]);
  });

  it('is small', () => {
    expect(packed.size).toBeLessThan(1_000_000);
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
    expect(Object.keys(dependencies).filter((name) => !isUsed(name))).toEqual([]);
  });
});

describe('The installed package', { timeout: 60_000 }, () => {
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-package-'));
    writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
    // The registry is the one that this repository uses.
    cpSync(join(root, '.npmrc'), join(folder, '.npmrc'));
    await npm(folder, 'install', packed.tarball, '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error');
  }, 60_000);
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

  it('gives start to a program, with types', async () => {
    const program = `import { start, type HoldfastServer, type StartOptions } from 'holdfast';
const options: StartOptions = { inMemory: true, blobPort: 0 };
const server: HoldfastServer = await start(options);
const text: string = server.connectionString;
console.log(text.slice(0, 24));
await server.clock.advance(1);
await server.stop();
// @ts-expect-error: a wrong option does not compile.
start({ inMemoryPersistence: true });
`;
    writeFileSync(join(folder, 'program.ts'), program);
    const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
    const types = ['--types', 'node', '--typeRoots', join(root, 'node_modules', '@types')];
    const options = ['--strict', '--module', 'nodenext', '--target', 'es2023', '--outDir', 'built', ...types];
    await run(process.execPath, [compiler, 'program.ts', '--ignoreConfig', ...options], { cwd: folder });
    const text = readFileSync(join(folder, 'built', 'program.js'), 'utf8');
    writeFileSync(join(folder, 'built', 'program.js'), text.replace(/start\(\{ inMemoryPersistence.*/, ''));
    const { stdout } = await run(process.execPath, [join('built', 'program.js')], { cwd: folder });
    expect(stdout).toBe('DefaultEndpointsProtocol\n');
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

async function pack(): Promise<Packed> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-pack-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const stdout = await npm(root, 'pack', '--json', '--ignore-scripts', '--pack-destination', folder);
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
