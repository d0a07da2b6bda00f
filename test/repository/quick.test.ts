import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { quickExcludes } from '../../scripts/quick.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const testFiles = ['src', 'test']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  )
  .map((file) => file.replaceAll(sep, '/'))
  .filter((file) => file.endsWith('.test.ts'));

const matches = (file: string, pattern: string) =>
  pattern.endsWith('/**') ? file.startsWith(pattern.slice(0, -2)) : file === pattern;

describe('The patterns that test:quick leaves out', () => {
  it.each(quickExcludes)('match a test file: %s', (pattern) => {
    expect(testFiles.filter((file) => matches(file, pattern))).not.toEqual([]);
  });

  it('cover every file that mocks a module, since the mock would reach later files of the process', () => {
    const quick = testFiles.filter((file) => !quickExcludes.some((pattern) => matches(file, pattern)));
    expect(quick.filter((file) => /^vi\.mock\(/m.test(readFileSync(join(root, file), 'utf8')))).toEqual([]);
  });
});
