/** A copy of the repository's machinery around sources of a test's own, as a clone would be. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** What installs, builds and tests the sources. */
export const machinery = [
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'vitest.config.ts',
  'biome.json',
  'scripts',
];

export interface Tree {
  readonly folder: string;
  write(file: string, text: string): void;
  node(words: readonly string[], env?: Record<string, string>): SpawnSyncReturns<string>;
}

export function newTree({ installed }: { installed: boolean }): Tree {
  const folder = newFolder();
  for (const each of machinery) cpSync(join(root, each), join(folder, each), { recursive: true });
  if (installed) symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
  // Biome takes its list of ignored files from git.
  writeFileSync(join(folder, '.gitignore'), 'node_modules\nbuild\ndist\n.build-*\n');
  const tree: Tree = {
    folder,
    write(file, text) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), text);
    },
    node(words, env = {}) {
      const { CI: _, HOLDFAST_TEST_REPORT: __, NODE_OPTIONS: ___, VITEST: ____, ...inherited } = process.env;
      return spawnSync(process.execPath, words, { cwd: folder, env: { ...inherited, ...env }, encoding: 'utf8' });
    },
  };
  return tree;
}

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}
