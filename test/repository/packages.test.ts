import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from '../support/repository-copy.ts';

interface Locked {
  readonly version?: string;
  readonly resolved?: string;
  readonly optionalDependencies?: Record<string, string>;
}

describe('The lock file', () => {
  const text = readFileSync(join(root, 'package-lock.json'), 'utf8');
  const packages: Record<string, Locked> = JSON.parse(text).packages;

  it('names no download address', () => {
    expect(text).not.toMatch(/https?:\/\/[^"]*\.tgz|"resolved"/);
  });

  it('names the binaries of every platform, not only of the one on which it was written', () => {
    const missing = Object.values(packages)
      .flatMap(({ optionalDependencies = {} }) => Object.keys(optionalDependencies))
      .filter((name) => packages[`node_modules/${name}`]?.version === undefined);
    expect(missing).toEqual([]);
  });
});
