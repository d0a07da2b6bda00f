/** The executables azurite and azurite-blob, as tools start them that know the emulator. */
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readdirSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Program, runProgram } from './program.ts';
import { newFolder, root } from './tree.ts';

const READY = 'Azurite Blob service is successfully listening at ';
const MEMORY = ['--inMemoryPersistence', '--blobPort', '0'];

describe('azurite', () => {
  it('prints the lines of the emulator and nothing else on standard output when it is silent', async () => {
    const program = azurite([...MEMORY, '--blobHost', '0.0.0.0', '--silent']);
    await program.printed(READY);
    program.kill('SIGTERM');
    expect(await program.ended).toEqual({ code: 0, signal: null });
    expect(program.stdout().replace(/:\d+$/gm, ':PORT')).toBe(`Azurite Blob service is starting at http://0.0.0.0:PORT
Azurite Blob service is successfully listening at http://0.0.0.0:PORT
Azurite Blob service is closing...
Azurite Blob service successfully closed
`);
  });

  it('serves when it prints that it listens, and prints the connection string before', async () => {
    const program = azurite(MEMORY);
    await program.printed(READY);
    const [before = '', after = ''] = program.stdout().split(READY);
    expect(before).toContain('connection string  DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;');
    expect((await fetch(`${after.trim()}/health/ready`)).status).toBe(200);
  });

  it('ends with 0 at SIGINT', async () => {
    const program = azurite(MEMORY);
    await program.printed(READY);
    program.kill('SIGINT');
    expect(await program.ended).toEqual({ code: 0, signal: null });
  });

  it('ends with 0 at the message shutdown of the process that forked it', async () => {
    const child = fork(join(root, 'dist', 'azurite.js'), MEMORY, { cwd: newFolder(), silent: true });
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
    expect(printed).toMatch(/Azurite Blob service successfully closed\n$/);
  });

  it('ends with 1 when the start fails, also when it was forked', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void taken.close());
    await once(taken, 'listening');
    const { port } = taken.address() as { port: number };
    const words = ['--inMemoryPersistence', '--blobPort', String(port)];
    const child = fork(join(root, 'dist', 'azurite.js'), words, { cwd: newFolder(), silent: true });
    onTestFinished(() => void child.kill('SIGKILL'));
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
    expect(await once(child, 'close')).toEqual([1, null]);
    expect(said).toContain(`azurite: Port ${port} is in use`);
  });

  it('goes on when nobody reads its output any more', async () => {
    const child = spawn(process.execPath, [join(root, 'dist', 'azurite.js'), ...MEMORY], {
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

  it('says in one line that other services are missing and which of their flags it passes over', async () => {
    const program = azurite([...MEMORY, '--queueHost', '0.0.0.0', '--tableHost', '0.0.0.0']);
    await program.printed(READY);
    expect(program.stderr()).toBe(
      'azurite: this server has no queue service and no table service yet; passed over: --queueHost, --tableHost.\n',
    );
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
    chmodSync(join(root, 'dist', 'azurite.js'), 0o755);
    symlinkSync(join(root, 'dist', 'azurite.js'), join(folder, 'emulator'));
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

describe('azurite-blob', () => {
  it('prints that it listens in the words of both programs of the emulator', async () => {
    const program = runProgram(process.execPath, [join(root, 'dist', 'azurite-blob.js'), ...MEMORY, '-s'], {
      cwd: newFolder(),
    });
    await program.printed(READY);
    expect(program.stdout()).toMatch(
      /^Azurite Blob service is starting on 127\.0\.0\.1:0\nAzurite Blob service successfully listens on (http:\/\/127\.0\.0\.1:\d+)\nAzurite Blob service is successfully listening at \1\n$/,
    );
    expect(program.stderr()).toBe('');
  });
});

describe('holdfast', () => {
  it('refuses the flags of services that do not exist yet', async () => {
    const program = runProgram(process.execPath, [join(root, 'dist', 'cli.js'), '--queueHost', '0.0.0.0'], {
      cwd: newFolder(),
    });
    expect(await program.ended).toEqual({ code: 1, signal: null });
    expect(program.stderr()).toMatch(/^holdfast: .*--queueHost.*queue service.*\n$/);
  });

  it('prints nothing when it is silent', async () => {
    const folder = newFolder();
    const program = runProgram(process.execPath, [join(root, 'dist', 'cli.js'), '--silent', '--blobPort', '0'], {
      cwd: folder,
    });
    while (!existsSync(join(folder, 'holdfast-data', 'rows', 'data.mdb')))
      await new Promise((done) => setTimeout(done, 20));
    program.kill('SIGTERM');
    expect(await program.ended).toEqual({ code: 0, signal: null });
    expect(program.stdout() + program.stderr()).toBe('');
  });
});

function azurite(
  words: readonly string[],
  { folder = newFolder(), env = {} }: { folder?: string; env?: Record<string, string> } = {},
): Program {
  return runProgram(process.execPath, [join(root, 'dist', 'azurite.js'), ...words], { cwd: folder, env });
}
