/** Copies of the built program, each with one bug. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { root } from '../support/restartable-servers.ts';

export interface Bug {
  readonly title: string;
  /** In `build`. */
  readonly file: string;
  readonly find: RegExp;
  readonly replace: string;
}

/** The folder of the copy, which is a repository to `restartableServer`. */
export function planted({ title, file, find, replace }: Bug): string {
  const copy = temporaryFolder();
  cpSync(join(root, 'build'), join(copy, 'dist'), { recursive: true });
  cpSync(join(root, 'package.json'), join(copy, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'), 'junction');
  const path = join(copy, 'dist', file);
  const source = readFileSync(path, 'utf8');
  const changed = source.replace(find, () => replace);
  if (changed === source) throw new Error(`${title}: there is no such line in ${file}.`);
  writeFileSync(path, changed);
  return copy;
}

/** Which requests meet is random: some histories pass by the bug. */
const ROUNDS_MAX = 20;

/** @param round checks one history, each time another one; returns what is wrong with it */
export async function isFound(round: () => Promise<readonly unknown[]>): Promise<boolean> {
  for (let rounds = 0; rounds < ROUNDS_MAX; rounds++) if ((await round()).length > 0) return true;
  return false;
}

/** For as long as the test runs. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-histories-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  return folder;
}
