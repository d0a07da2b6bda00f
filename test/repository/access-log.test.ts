/** The lines that a server prints for requests, as a user sees them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BlobServiceClient } from '@azure/storage-blob';
import { describe, expect, it, onTestFinished } from 'vitest';
import { runProgram } from '../support/child-program.ts';
import { newFolder, root } from '../support/repository-copy.ts';

const MEMORY = ['--inMemoryPersistence', '--blobPort', '0'];
const READY = 'File service is successfully listening at ';
const LINE = /^127\.0\.0\.1 - - \[.*\] "PUT \/devstoreaccount1\/one\?restype=container HTTP\/1\.1" 201 -/m;

describe('The access log', () => {
  it('is a line for each request, and nothing else follows the lines of the start', async () => {
    expect(await printedAfterStart([])).toMatch(new RegExp(`${LINE.source}\n$`));
  });

  it.each([
    ['--log-level', 'warn'],
    ['--silent', '--log-level', 'info'],
  ])('is not printed with %s', async (...flags) => {
    expect(await printedAfterStart(flags.filter((flag) => flag !== undefined))).toBe('');
  });

  it('is printed beside a log that goes into a file, and not if that is silent', async () => {
    expect(await printedAfterStart(['--debug', 'debug.log'])).toMatch(LINE);
    expect(await printedAfterStart(['--debug', 'debug.log', '--silent'])).toBe('');
  });

  it('is JSON with the name of the level where the log is JSON', async () => {
    const printed = await printedAfterStart(['--log-format', 'json']);
    expect(JSON.parse(printed)).toMatchObject({ level: 'info', msg: 'request', status: 201 });
  });

  it('does not stop a server whose output nobody reads', async () => {
    const child = spawn(
      process.execPath,
      [join(root, 'dist', 'bin', 'azurite.js'), '--location', 'data', ...MEMORY.slice(1)],
      {
        cwd: newFolder(),
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    );
    onTestFinished(() => void child.kill('SIGKILL'));
    let printed = '';
    const read = (text: Buffer) => {
      printed += text;
    };
    child.stdout.on('data', read);
    while (!printed.includes(READY)) await once(child.stdout, 'data');
    child.stdout.off('data', read).pause();
    const { port } = new URL(/Blob service is successfully listening at (\S+)/.exec(printed)?.[1] ?? '');
    const path = `/devstoreaccount1/${'long/'.repeat(400)}`;
    for (let i = 0; i < 300; i++) expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(404);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });
});

/** What azurite prints for Create Container, after the lines of the start and before those of the end. */
async function printedAfterStart(flags: readonly string[]): Promise<string> {
  const folder = newFolder();
  const words = [join(root, 'dist', 'bin', 'azurite.js'), ...MEMORY, ...flags];
  const program = runProgram(process.execPath, words, { cwd: folder });
  await program.printed(READY);
  const [, origin] = /Blob service is successfully listening at (\S+)/.exec(program.stdout()) ?? [];
  const development = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
  const connection = `DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=${development};BlobEndpoint=${origin}/devstoreaccount1;`;
  await BlobServiceClient.fromConnectionString(connection).createContainer('one');
  program.kill('SIGTERM');
  expect(await program.ended).toEqual({ code: 0, signal: null });
  expect(program.stderr()).toBe('');
  const file = join(folder, 'debug.log');
  if (flags.includes('--debug')) expect(existsSync(file) && readFileSync(file, 'utf8')).toContain('request requestId=');
  const [, after = ''] =
    /Azurite File service is successfully listening at \S+\n([\s\S]*?)Azurite Blob service is closing/.exec(
      program.stdout(),
    ) ?? [];
  return after;
}
