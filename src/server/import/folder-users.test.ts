import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findFolderUser } from './folder-users.ts';

const hasProc = existsSync('/proc/self/fd');

let folder: string;
let child: ChildProcess;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'holdfast-')));
});
afterEach(async () => {
  child.kill();
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  rmSync(folder, { recursive: true, force: true });
});

const GOES_ON = "console.log('ready'); setInterval(() => {}, 1_000);";

async function run(words: readonly string[], cwd = tmpdir()): Promise<number> {
  child = spawn(process.execPath, words, { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout!, 'data');
  return child.pid!;
}

/** A program at the place where the package has its own, and the link of npm to it. */
function program(name: string): string {
  const place = join(folder, 'node_modules', name);
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, 'azurite.js'), GOES_ON);
  const link = join(folder, 'azurite');
  symlinkSync(join(place, 'azurite.js'), link);
  return link;
}

describe('The process that uses a folder of Azurite', () => {
  it.each([
    ['w', true],
    ['a', true],
    ['r', false],
  ])('has a file of it open with %s: %s', async (flags, uses) => {
    writeFileSync(join(folder, 'extent'), '');
    const file = JSON.stringify(join(folder, 'extent'));
    const id = await run(['--eval', `require('node:fs').openSync(${file}, '${flags}'); ${GOES_ON}`]);
    expect(findFolderUser(folder)).toBe(uses && hasProc ? id : undefined);
  });

  it.each([
    ['in which it was started', (data: string) => ({ words: [], cwd: data })],
    ['of its flag', (data: string) => ({ words: ['--silent', '--location', data], cwd: undefined })],
    ['of its short flag', () => ({ words: ['-l', 'data'], cwd: folder })],
    ['of its flag with =', (data: string) => ({ words: [`--location=${data}`], cwd: undefined })],
  ])('is an Azurite for the folder %s', async (_, arrange) => {
    const data = join(folder, 'data');
    mkdirSync(data);
    const { words, cwd } = arrange(data);
    const id = await run([program('azurite/dist/src'), ...words], cwd);
    expect(findFolderUser(data)).toBe(hasProc ? id : undefined);
    expect(findFolderUser(join(folder, 'another'))).toBeUndefined();
  });

  it('is not the program azurite of this package, whose folder is another', async () => {
    await run([program('holdfast/dist/bin')], folder);
    expect(findFolderUser(folder)).toBeUndefined();
  });
});
