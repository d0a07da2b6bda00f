/** The executables azurite, azurite-blob, azurite-queue and azurite-table, as tools start them that know the emulator. */
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readdirSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { TableServiceClient } from '@azure/data-tables';
import { BlobServiceClient } from '@azure/storage-blob';
import { QueueServiceClient } from '@azure/storage-queue';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Program, runProgram } from '../support/child-program.ts';
import { newFolder, root } from '../support/repository-copy.ts';

const READY = 'Azurite File service is successfully listening at ';
const MEMORY = ['--inMemoryPersistence', '--blobPort', '0'];
const MEMORY_ONLY = ['--inMemoryPersistence'];
const services = ['Blob', 'Queue', 'Table', 'File'];

describe('azurite', () => {
  it('prints the lines of the emulator and nothing else on standard output when it is silent', async () => {
    const program = azurite([...MEMORY, '--blobHost', '0.0.0.0', '--silent']);
    await program.printed(READY);
    program.kill('SIGTERM');
    expect(await program.ended).toEqual({ code: 0, signal: null });
    const lines = program.stdout().replace(/:\d+$/gm, ':PORT').trimEnd().split('\n');
    expect(lines).toEqual([
      'Azurite Blob service is starting at http://0.0.0.0:PORT',
      'Azurite Queue service is starting at http://127.0.0.1:PORT',
      'Azurite Table service is starting at http://127.0.0.1:PORT',
      'Azurite File service is starting at http://127.0.0.1:PORT',
      'Azurite Blob service is successfully listening at http://0.0.0.0:PORT',
      'Azurite Queue service is successfully listening at http://127.0.0.1:PORT',
      'Azurite Table service is successfully listening at http://127.0.0.1:PORT',
      'Azurite File service is successfully listening at http://127.0.0.1:PORT',
      ...services.map((service) => `Azurite ${service} service is closing...`),
      ...services.map((service) => `Azurite ${service} service successfully closed`),
    ]);
  });

  it('serves when it prints that it listens, and prints the connection string before', async () => {
    const program = azurite(MEMORY);
    await program.printed('Azurite Blob service is successfully listening at ');
    const [before = ''] = program.stdout().split('Azurite Blob service is successfully');
    expect(before).toContain('connection string  DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;');
    const origins = [...before.matchAll(/(Blob|Queue|Table|File)Endpoint=(http:[^;]*)\/devstoreaccount1;/g)];
    expect(origins.map(([, service]) => service)).toEqual(services);
    for (const [, , origin] of origins) expect((await fetch(`${origin}/health/ready`)).status).toBe(200);
  });

  it.each(['--version', '-v'])('prints a version that scripts can parse: %s', async (flag) => {
    const program = azurite([flag]);
    expect(await program.ended).toEqual({ code: 0, signal: null });
    expect(program.stdout()).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it('ends with 0 at SIGINT', async () => {
    const program = azurite(MEMORY);
    await program.printed(READY);
    program.kill('SIGINT');
    expect(await program.ended).toEqual({ code: 0, signal: null });
  });

  it('ends with 0 at the message shutdown of the process that forked it', async () => {
    const child = fork(join(root, 'dist', 'bin', 'azurite.js'), MEMORY, { cwd: newFolder(), silent: true });
    onTestFinished(() => void child.kill('SIGKILL'));
    let printed = '';
    const ready = new Promise<void>((resolve) => {
      child.stdout?.setEncoding('utf8').on('data', (text) => {
        printed += text;
        if (printed.includes(READY)) resolve();
      });
    });
    await ready;
    child.send('shutdown');
    expect(await once(child, 'close')).toEqual([0, null]);
    expect(printed).toMatch(/Azurite File service successfully closed\n$/);
  });

  it('ends with 1 when the start fails, also when it was forked', async () => {
    const port = await aTakenPort();
    const words = ['--inMemoryPersistence', '--queuePort', '0', '--blobPort', port];
    const child = fork(join(root, 'dist', 'bin', 'azurite.js'), words, { cwd: newFolder(), silent: true });
    onTestFinished(() => void child.kill('SIGKILL'));
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
    expect(await once(child, 'close')).toEqual([1, null]);
    expect(said).toContain(`azurite: Port ${port} is in use`);
  });

  it('goes on when its output is no longer read', async () => {
    const child = spawn(process.execPath, [join(root, 'dist', 'bin', 'azurite.js'), ...MEMORY], {
      cwd: newFolder(),
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      printed += text;
    });
    while (!printed.includes(READY)) await once(child.stdout, 'data');
    child.stdout.destroy();
    expect((await fetch(`${printed.split(READY)[1]?.trim()}/health/ready`)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it.each(['blob', 'queue', 'table', 'file'])('names the flag of the port that is in use: %s', async (service) => {
    const port = await aTakenPort();
    const free = ['blob', 'queue', 'table', 'file'].flatMap((each) => [`--${each}Port`, each === service ? port : '0']);
    const program = azurite(['--inMemoryPersistence', ...free]);
    expect(await program.ended).toEqual({ code: 1, signal: null });
    expect(program.stderr()).toContain(`azurite: Port ${port} is in use: choose another by --${service}Port`);
  });

  it('ends with 1 and one line under its own name when a flag is wrong', async () => {
    const program = azurite(['--blobProt', '1']);
    expect(await program.ended).toEqual({ code: 1, signal: null });
    expect(program.stderr()).toBe('azurite: There is no flag --blobProt. Did you mean --blobPort?\n');
    expect(program.stdout()).toBe('');
  });

  it('keeps its data in holdfast-data within the current folder, not among the files that are there', async () => {
    const folder = newFolder();
    const program = azurite(['--blobPort', '0'], { folder });
    await program.printed(READY);
    expect(readdirSync(folder)).toEqual(['holdfast-data']);
  });

  it('refuses AZURITE_DB, and lets AZURITE_SKIP_API_VERSION_CHECK change nothing', async () => {
    const refused = azurite(MEMORY, { env: { AZURITE_DB: 'mysql://localhost/azurite' } });
    expect(await refused.ended).toEqual({ code: 1, signal: null });
    expect(refused.stderr()).toMatch(/^azurite: .*AZURITE_DB.*\n$/);
    const program = azurite(MEMORY, { env: { AZURITE_SKIP_API_VERSION_CHECK: 'true' } });
    await program.printed(READY);
  });

  it.skipIf(process.platform === 'win32')('runs through a link of any name, as npm makes them', async () => {
    const folder = newFolder();
    chmodSync(join(root, 'dist', 'bin', 'azurite.js'), 0o755);
    symlinkSync(join(root, 'dist', 'bin', 'azurite.js'), join(folder, 'emulator'));
    const program = runProgram(join(folder, 'emulator'), [...MEMORY, '--silent'], { cwd: folder });
    await program.printed(READY);
    expect(program.stdout()).toMatch(/^Azurite Blob service is starting at /);
  });

  const tools: [tool: string, ...words: string[]][] = [
    ['a developer', '--silent', '--location', 'data', '--debug', 'debug.log'],
    ['the documentation of Azurite', '-s', '-l', 'data', '-d', join('logs', 'debug.log')],
    ['a loose one', '-L', '--location=data'],
    ...[
      ['Aspire', '-l', 'data', '--blobHost', '0.0.0.0', '--queueHost', '0.0.0.0', '--tableHost', '0.0.0.0'],
      ['Testcontainers with memory', '--blobHost', '0.0.0.0', '--inMemoryPersistence', '--extentMemoryLimit', '64'],
      [
        'those who name all ports',
        '-l',
        'data',
        '--queuePort',
        '0',
        '--tablePort',
        '0',
        '--tableKeepAliveTimeout',
        '9',
      ],
      ['Testcontainers for Go', '--inMemoryPersistence', '--extentMemoryLimit', '64.000000', '--tableHost', '0.0.0.0'],
    ].map((words): [string, ...string[]] => [...words, '--disableProductStyleUrl', '--skipApiVersionCheck'] as never),
  ];
  it.each(tools)('starts with the flags of %s', async (_, ...words) => {
    const program = azurite([...words, '--blobPort', '0', '--disableTelemetry']);
    await program.printed(READY);
    program.kill('SIGTERM');
    expect(await program.ended).toEqual({ code: 0, signal: null });
  });
});

// The emulator has no program for files.
describe.each(services.slice(0, 3))('azurite-%s', (title) => {
  const name = title.toLowerCase();
  const port = [`--${name}Port`, '0'];

  it('prints that it listens in the words of both programs of the emulator, and of no other service', async () => {
    const program = azurite([...MEMORY_ONLY, ...port, '-s'], { name: `azurite-${name}` });
    await program.printed('is successfully listening at ');
    program.kill('SIGTERM');
    expect(await program.ended).toEqual({ code: 0, signal: null });
    const origin = /listens on (http:\/\/127\.0\.0\.1:\d+)\n/.exec(program.stdout())?.[1];
    expect(program.stdout()).toBe(`Azurite ${title} service is starting on 127.0.0.1:0
Azurite ${title} service successfully listens on ${origin}
Azurite ${title} service is successfully listening at ${origin}
Azurite ${title} service is closing...
Azurite ${title} service successfully closed
`);
    expect(program.stderr()).toBe('');
  });

  it('serves the service in its name, and prints a connection string of only that', async () => {
    const program = azurite([...MEMORY_ONLY, ...port], { name: `azurite-${name}` });
    await program.printed('is successfully listening at ');
    const connection = /connection string {2}(\S+)/.exec(program.stdout())?.[1] ?? '';
    expect(connection.match(/\w+Endpoint(?==)/g)).toEqual([`${title}Endpoint`]);
    await use(connection);
  });

  it('ignores the flags of other services, with a warning of one line', async () => {
    const others = services.filter((each) => each !== title).map((each) => each.toLowerCase());
    const words = others.flatMap((each) => [`--${each}Host`, '0.0.0.0', `--${each}Port=10000`]);
    const program = azurite([...MEMORY_ONLY, ...words, ...port], { name: `azurite-${name}` });
    await program.printed('is successfully listening at ');
    const flags = others.flatMap((each) => [`--${each}Host`, `--${each}Port`]).join(', ');
    expect(program.stderr()).toBe(`azurite-${name}: this is the ${name} service; passed over: ${flags}.\n`);
  });
});

describe('holdfast', () => {
  it('serves all four and passes over nothing', async () => {
    const words = [...MEMORY, '--queueHost', '127.0.0.1', '--tablePort', '0', '--queueKeepAliveTimeout', '9'];
    const program = runProgram(process.execPath, [join(root, 'dist', 'bin', 'holdfast.js'), ...words], {
      cwd: newFolder(),
    });
    await program.printed(READY);
    expect(program.stdout().match(/^ {2}\w+ service/gm)).toEqual([
      '  blob service',
      '  queue service',
      '  table service',
      '  file service',
    ]);
    expect(program.stderr()).toBe('');
    await use(/connection string {2}(\S+)/.exec(program.stdout())?.[1] ?? '');
  });

  it('prints nothing when it is silent', async () => {
    const folder = newFolder();
    const program = runProgram(
      process.execPath,
      [join(root, 'dist', 'bin', 'holdfast.js'), '--silent', '--blobPort', '0'],
      {
        cwd: folder,
      },
    );
    while (!existsSync(join(folder, 'holdfast-data', 'rows', 'data.mdb')))
      await new Promise((done) => setTimeout(done, 20));
    program.kill('SIGTERM');
    expect(await program.ended).toEqual({ code: 0, signal: null });
    expect(program.stdout() + program.stderr()).toBe('');
  });
});

function azurite(
  words: readonly string[],
  {
    folder = newFolder(),
    env = {},
    name = 'azurite',
  }: { folder?: string; env?: Record<string, string>; name?: string } = {},
): Program {
  return runProgram(process.execPath, [join(root, 'dist', 'bin', `${name}.js`), ...words], { cwd: folder, env });
}

async function aTakenPort(): Promise<string> {
  const taken = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void taken.close());
  await once(taken, 'listening');
  return String((taken.address() as { port: number }).port);
}

/** Makes something in each service that the string names. */
async function use(connection: string): Promise<void> {
  const at = (service: string) => connection.includes(`${service}Endpoint=`);
  if (at('Blob')) await BlobServiceClient.fromConnectionString(connection).createContainer('first');
  if (at('Queue')) await QueueServiceClient.fromConnectionString(connection).createQueue('first');
  if (at('Table'))
    await TableServiceClient.fromConnectionString(connection, { allowInsecureConnection: true }).createTable('first');
}
