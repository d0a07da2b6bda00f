import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { plantedBugs } from './bugs.mjs';

const path = (file: string) => fileURLToPath(new URL(`../../${file}`, import.meta.url));

describe('A planted bug', () => {
  it.each(plantedBugs)('replaces text that occurs once, and names tests that exist: $name', ({ file, find, tests }) => {
    expect(readFileSync(path(file), 'utf8').split(find)).toHaveLength(2);
    const [testFile, flag, title] = tests;
    expect(existsSync(path(testFile!))).toBe(true);
    if (flag !== undefined) expect(readFileSync(path(testFile!), 'utf8')).toContain(title);
  });
});
