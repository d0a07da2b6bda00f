import { readdirSync } from 'node:fs';
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

describe('The patterns that test:quick leaves out', () => {
  it.each(quickExcludes)('match a test file: %s', (pattern) => {
    const matched = testFiles.filter((file) =>
      pattern.endsWith('/**') ? file.startsWith(pattern.slice(0, -2)) : file === pattern,
    );
    expect(matched).not.toEqual([]);
  });
});
