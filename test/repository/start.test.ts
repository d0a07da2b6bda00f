/** The real server, as a user meets it. */
import { once } from 'node:events';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Program, runProgram } from '../support/child-program.ts';
import { freePort } from '../support/postgres-cluster.ts';
import { newFolder, root } from '../support/repository-copy.ts';

const READY = 'successfully listening at ';

/** Has the port until the test ends. Where another program keeps it, that is as good. */
async function takePort(port: number): Promise<void> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const server = createServer().listen(port, '127.0.0.1');
    const isTaken = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isTaken) {
      await new Promise((done) => setTimeout(done, 100));
      continue;
    }
    onTestFinished(() => void server.close());
    return;
  }
}

describe('holdfast', () => {
  it('serves from the folder that it names, and ends with 0 at SIGTERM', async () => {
    const folder = newFolder();
    const program = holdfast(folder, '--location', 'data', '--blobPort', '0');
    await program.printed(READY);
    expect(program.stdout()).toContain(join(folder, 'data'));
    expect(program.stdout()).toMatch(
      /AccountName=devstoreaccount1;AccountKey=\S+;BlobEndpoint=(http:\/\/127\.0\.0\.1:\d+\/\w+);QueueEndpoint=(?!\1)http:\S+;TableEndpoint=http:\S+;FileEndpoint=http:\S+;\n/,
    );
    expect((await fetch(`${origin(program)}/health/live`)).status).toBe(200);
    expect(readdirSync(join(folder, 'data'))).not.toEqual([]);
    program.kill('SIGTERM');
    expect(await program.ended).toEqual({ code: 0, signal: null });
  });

  it('leaves no file in memory', async () => {
    const folder = newFolder();
    const program = holdfast(folder, '--inMemoryPersistence', '--blobPort', '0');
    await program.printed(READY);
    program.kill('SIGINT');
    expect(await program.ended).toEqual({ code: 0, signal: null });
    expect(readdirSync(folder)).toEqual([]);
  });

  it('names the port that is in use', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    const words = ['--blobPort', '0', '--tablePort', String(port)];
    expect(await refusal(newFolder(), ...words)).toContain(`Port ${port} is in use: choose another by --tablePort`);
  });

  it('goes on without the File service, and says so, if another program has its default port', async () => {
    await takePort(10_003);
    const ports = [await freePort(), await freePort(), await freePort()];
    const words = ['blob', 'queue', 'table'].flatMap((service, at) => [`--${service}Port`, String(ports[at])]);
    const program = holdfast(newFolder(), '--inMemoryPersistence', ...words);
    await program.printed(READY);
    expect(program.stdout()).toMatch(
      /WARN {2}Port 10003 is taken: the file service is not served\. --filePort names another/,
    );
    expect(program.stdout()).not.toMatch(/file service {2}|FileEndpoint|File service is successfully/);
    expect((await fetch(`http://127.0.0.1:${ports[0]}/health/ready`)).status).toBe(200);
    const named = ['--filePort', '10003', '--blobPort', '0'];
    expect(await refusal(newFolder(), ...named)).toContain('Port 10003 is in use: choose another by --filePort');
  });

  it('goes on without SMB, and says so, if another program has its default port', async () => {
    await takePort(10_445);
    const ports = await Promise.all(
      ['blob', 'queue', 'table', 'file'].map(async (service) => [`--${service}Port`, String(await freePort())]),
    );
    const program = holdfast(newFolder(), '--inMemoryPersistence', ...ports.flat());
    await program.printed(READY);
    expect(program.stdout()).toMatch(/WARN {2}Port 10445 is taken: SMB is not served\. --smbPort names another port/);
    expect(program.stdout()).not.toContain('smb://');
    const named = ['--smbPort', '10445', '--blobPort', '0'];
    expect(await refusal(newFolder(), ...named)).toContain('Port 10445 is in use: choose another by --smbPort');
  });

  it('names the folder that another Holdfast uses', async () => {
    const folder = newFolder();
    const first = holdfast(folder, '--blobPort', '0');
    await first.printed(READY);
    expect(await refusal(folder, '--blobPort', '0')).toMatch(/holdfast-data.*in use/);
    expect((await fetch(`${origin(first)}/health/live`)).status).toBe(200);
  });

  it('names the folder that it cannot write', async () => {
    const folder = newFolder();
    mkdirSync(join(folder, 'inner'));
    writeFileSync(join(folder, 'inner', 'file'), '');
    const line = await refusal(folder, '--location', join('inner', 'file'), '--blobPort', '0');
    expect(line).toContain(join(folder, 'inner', 'file'));
  });

  it('serves the accounts of AZURITE_ACCOUNTS instead of the default one', async () => {
    const words = [join(root, 'dist', 'bin', 'holdfast.js'), '--inMemoryPersistence', '--blobPort', '0'];
    const program = runProgram(process.execPath, words, { cwd: newFolder(), env: { AZURITE_ACCOUNTS: 'one:a2V5' } });
    await program.printed(READY);
    expect(program.stdout()).toContain('AccountName=one;AccountKey=a2V5;');
    expect(program.stdout()).not.toContain('devstoreaccount1');
  });
});

function holdfast(cwd: string, ...words: string[]): Program {
  return runProgram(process.execPath, [join(root, 'dist', 'bin', 'holdfast.js'), ...words], { cwd });
}

/** The one line of a start that fails. */
async function refusal(cwd: string, ...words: string[]): Promise<string> {
  const program = holdfast(cwd, ...words);
  expect(await program.ended).toEqual({ code: 1, signal: null });
  const lines = program.stderr().trimEnd().split('\n');
  expect(lines).toHaveLength(1);
  return lines[0] ?? '';
}

function origin(program: Program): string {
  return /successfully listening at (\S+)/.exec(program.stdout())?.[1] ?? '';
}
