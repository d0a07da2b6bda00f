/** The command line around a server of the test's own; test/repository/start.test.ts has the real one. */
import { cpSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Program, runProgram } from '../support/child-program.ts';
import { newFolder, root } from '../support/repository-copy.ts';

const READY = 'File service is successfully listening';

describe('holdfast start', () => {
  it('prints what it serves, a connection string, and where the data is', async () => {
    const program = cli(server(), '--location', 'some-data');
    await program.printed(READY);
    expect(program.stdout()).toMatch(/^Holdfast \d+\.\d+\.\d+\n/);
    expect(program.stdout()).toMatch(/^ {2}blob service +http:\/\/127\.0\.0\.1:1\/one$/m);
    expect(program.stdout()).toMatch(/^ {2}queue service +http:\/\/127\.0\.0\.1:2\/one$/m);
    expect(program.stdout()).toMatch(/^ {2}table service +http:\/\/127\.0\.0\.1:3\/one$/m);
    expect(program.stdout()).toMatch(/^ {2}file service +http:\/\/127\.0\.0\.1:4\/one$/m);
    expect(program.stdout()).toContain('the connection string\n');
    expect(program.stdout()).toMatch(/data +\S+some-data\n/);
    expect(program.stdout()).toContain('Azurite Blob service is successfully listening at http://127.0.0.1:1\n');
    expect(program.stdout()).toContain('Azurite Queue service is successfully listening at http://127.0.0.1:2\n');
    expect(program.stdout()).toContain('Azurite Table service is successfully listening at http://127.0.0.1:3\n');
    expect(program.stdout()).toContain('Azurite File service is successfully listening at http://127.0.0.1:4\n');
  });

  it('prints nothing when silent', async () => {
    const program = cli(server({ stop: "console.log('stopping')" }), '--silent', '--debug', 'log');
    await started(program);
    program.kill('SIGTERM');
    await program.ended;
    expect(program.stdout()).toBe('stopping\n');
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('stops the server at %s and ends with 0', async (signal) => {
    const program = cli(server({ stop: "console.log('stopping'); await wait(50); console.log('stopped')" }));
    await program.printed(READY);
    program.kill(signal);
    expect(await program.ended).toEqual({ code: 0, signal: null });
    expect(program.stdout()).toMatch(/stopping\nstopped\n$/);
  });

  it('ends at once at a second signal', async () => {
    const program = cli(server({ stop: "console.log('stopping'); await wait(1e6)" }));
    await program.printed(READY);
    program.kill('SIGTERM');
    await program.printed('stopping');
    program.kill('SIGTERM');
    expect(await program.ended).toEqual({ code: null, signal: 'SIGTERM' });
  });

  it('treats a signal that npm forwards as the same signal', async () => {
    const stop = "console.log('stopping'); await wait(300)";
    const program = runCli(server({ stop }), [], { npm_lifecycle_event: 'start' });
    await program.printed(READY);
    program.kill('SIGINT');
    await program.printed('stopping');
    program.kill('SIGINT');
    expect(await program.ended).toEqual({ code: 0, signal: null });
  });

  it.skipIf(process.platform === 'win32')('stops when the shell that npm started it with dies', async () => {
    const folder = cliFolder(server({ stop: "writeFileSync('stopped', '')" }));
    // A shell that has more to do stays between, as the one of npm does on many systems.
    const command = `"${process.execPath}" dist/bin/holdfast.js; true`;
    const shell = runProgram('/bin/sh', ['-c', command], { cwd: folder, env: { npm_lifecycle_event: 'start' } });
    await shell.printed(READY);
    shell.kill('SIGTERM');
    await shell.ended;
    expect(existsSync(join(folder, 'stopped'))).toBe(true);
  });

  it('ends with 1 and the reason when the server cannot stop', async () => {
    const program = cli(server({ stop: "throw new Error('the disk is gone')" }));
    await program.printed(READY);
    program.kill('SIGTERM');
    expect(await program.ended).toEqual({ code: 1, signal: null });
    expect(program.stderr()).toContain('the disk is gone');
  });

  const errors: [what: string, code: string, line: RegExp][] = [
    ['what the user can put right', "new StartError('The folder is in use.')", /^holdfast: The folder is in use\.\n$/],
    [
      'a port in use',
      "new CannotListen({ service: 'queue', host: 'h', port: 20000 }, Object.assign(new Error('x'), { code: 'EADDRINUSE' }))",
      /^holdfast: Port 20000 is in use: .*--queuePort.*\n$/,
    ],
    [
      'an address that is not ours',
      "new CannotListen({ service: 'blob', host: '1.2.3.4', port: 1 }, Object.assign(new Error('x'), { code: 'EADDRNOTAVAIL' }))",
      /^holdfast: Cannot listen on 1\.2\.3\.4:1 .*--blobHost.*\n$/,
    ],
    [
      'a folder that cannot be written',
      "Object.assign(new Error('x'), { code: 'EACCES', syscall: 'mkdir', path: '/data' })",
      /^holdfast: Cannot write \/data \(EACCES\): .*--location.*\n$/,
    ],
  ];
  it.each(errors)('reports %s in one line and ends with 1', async (_, code, line) => {
    const program = cli(server({ start: `throw ${code}` }));
    expect(await program.ended).toEqual({ code: 1, signal: null });
    expect(program.stderr()).toMatch(line);
  });

  it('shows the stack of a bug', async () => {
    const program = cli(server({ start: "throw new TypeError('undefined is not a function')" }));
    expect((await program.ended).code).not.toBe(0);
    expect(program.stderr()).toContain('at ');
  });

  it('reports an unknown flag and a bad account string without loading the server', async () => {
    const broken = "throw new Error('loaded')";
    const flag = cli(broken, '--blobProt', '1');
    expect((await flag.ended).code).toBe(1);
    expect(flag.stderr()).toBe('holdfast: There is no flag --blobProt. Did you mean --blobPort?\n');
    const accounts = runCli(broken, [], { AZURITE_ACCOUNTS: 'one' });
    expect((await accounts.ended).code).toBe(1);
    expect(accounts.stderr()).toMatch(/^holdfast: AZURITE_ACCOUNTS: entry 1: it has no key\..*\n$/);
  });
});

describe('holdfast check', () => {
  it('ends with 0 when there are no findings', async () => {
    const program = cli(
      server({ check: "return { notes: ['12 rows'], findings: [] }" }),
      'check',
      '--location',
      'dist',
    );
    expect((await program.ended).code).toBe(0);
    expect(program.stdout()).toBe('12 rows\nEverything is in order.\n');
  });

  it('prints its findings and ends with 1', async () => {
    const found = "return { notes: [], findings: ['a blob without a container'] }";
    const program = cli(server({ check: found }), 'check', '--location', 'dist');
    expect((await program.ended).code).toBe(1);
    expect(program.stdout()).toBe('a blob without a container\n1 findings.\n');
  });

  it('reports a missing folder', async () => {
    const program = cli(server(), 'check', '--location', 'nowhere');
    expect((await program.ended).code).toBe(1);
    expect(program.stderr()).toMatch(/^holdfast: There is no folder \S+nowhere: .*\n$/);
  });
});

describe('holdfast help and version', () => {
  it('print and end with 0', async () => {
    const help = cli(server(), '--help');
    expect((await help.ended).code).toBe(0);
    expect(help.stdout()).toContain('--location <folder>');
    const version = cli(server(), '--version');
    expect((await version.ended).code).toBe(0);
    expect(version.stdout()).toMatch(/^holdfast \d+\.\d+\.\d+\n$/);
  });
});

interface Bodies {
  readonly start?: string;
  readonly stop?: string;
  readonly check?: string;
}

function server({ start = '', stop = '', check = 'return { notes: [], findings: [] }' }: Bodies = {}): string {
  return `import { writeFileSync } from 'node:fs';
import { CannotListen, StartError } from './server/config.js';
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
export async function start() {
  ${start};
  const alive = setInterval(() => undefined, 1000);
  setImmediate(() => process.stderr.write('started\\n'));
  return {
    blobUrl: 'http://127.0.0.1:1/one',
    queueUrl: 'http://127.0.0.1:2/one',
    tableUrl: 'http://127.0.0.1:3/one',
    fileUrl: 'http://127.0.0.1:4/one',
    connectionString: 'the connection string',
    async stop() { clearInterval(alive); ${stop} },
  };
}
export async function check() { ${check} }
`;
}

function cli(main: string, ...words: string[]): Program {
  return runCli(main, words);
}

function runCli(main: string, words: readonly string[], env: Record<string, string> = {}): Program {
  const folder = cliFolder(main);
  return runProgram(process.execPath, [join('dist', 'bin', 'holdfast.js'), ...words], { cwd: folder, env });
}

/** The compiled modules of the command line, with another index.js beside them. */
function cliFolder(main: string): string {
  const folder = newFolder();
  cpSync(join(root, 'package.json'), join(folder, 'package.json'));
  const isNeeded = (file: string) => !/\.map$/.test(file);
  cpSync(join(root, 'build'), join(folder, 'dist'), { recursive: true, filter: isNeeded });
  writeFileSync(join(folder, 'dist', 'index.js'), main);
  return folder;
}

async function started(program: Program): Promise<void> {
  while (!program.stderr().includes('started')) await new Promise((done) => setTimeout(done, 10));
}
