import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { summarise } from '../../scripts/summary.mjs';
import { newTree } from '../support/repository-copy.ts';

const skip = { test: 'a.test.ts > Full disk > gives 503', reason: 'no mount here' };

describe('The summary of npm test', () => {
  it('ends in the count of all', () => {
    const { lines, ok } = summarise({ passed: 123, failed: [], skipped: [skip, skip] }, [], false);
    expect(lines.at(-1)).toBe('123 passed, 0 failed, 2 skipped');
    expect(lines[0]).toBe('skipped: a.test.ts > Full disk > gives 503: no mount here');
    expect(ok).toBe(true);
  });

  it('counts a skip that is not listed as a failure in CI', () => {
    const { lines, ok } = summarise({ passed: 1, failed: [], skipped: [skip] }, [], true);
    expect(lines.at(-1)).toBe('1 passed, 1 failed, 0 skipped');
    expect(ok).toBe(false);
  });

  it('lets CI pass with a listed skip', () => {
    const allowed = [{ test: 'a.test.ts > Full disk', reason: 'containers cannot mount' }];
    const { lines, ok } = summarise({ passed: 1, failed: [], skipped: [skip] }, allowed, true);
    expect(lines.at(-1)).toBe('1 passed, 0 failed, 1 skipped');
    expect(ok).toBe(true);
  });
});

describe('npm test', () => {
  const passing = "import { it } from 'vitest';\n\nit('passes', () => {});\n";

  it('counts types, lint, passed, failed and skipped tests, and prints the reason of a skip', () => {
    const { stdout, status } = npmTest({
      'src/a.test.ts': `import { describe, expect, it } from 'vitest';

describe('A thing', () => {
  it('works', () => {});
  it('fails', () => expect(1).toBe(2));
  it('waits', (context) => context.skip('strace is not installed'));
});
`,
    });
    expect(stdout).toContain('skipped: src/a.test.ts > A thing > waits: strace is not installed');
    expect(stdout).toContain('failed: src/a.test.ts > A thing > fails');
    expect(lastLine(stdout)).toBe('3 passed, 1 failed, 1 skipped');
    expect(status).toBe(1);
  });

  it('fails for a type error and for what lint finds', () => {
    const { stdout, status } = npmTest({ 'src/a.test.ts': passing, 'src/b.ts': "export let b: number = 'b'\n" });
    expect(stdout).toContain('failed: type check\nfailed: lint\n');
    expect(lastLine(stdout)).toBe('1 passed, 2 failed, 0 skipped');
    expect(status).toBe(1);
  });

  it('fails when a test file cannot be loaded, and when there is an error outside of any test', () => {
    const { stdout, status } = npmTest({
      'src/a.test.ts': passing,
      'src/b.test.ts': "throw new Error('cannot load');\n",
      'src/c.test.ts': `${passing}void Promise.reject(new Error('stray'));\n`,
    });
    expect(stdout).toContain('failed: src/b.test.ts: cannot load');
    expect(stdout).toContain('failed: outside of any test: stray');
    expect(lastLine(stdout)).toBe('4 passed, 2 failed, 0 skipped');
    expect(status).toBe(1);
  });

  it('fails when vitest itself ends early', () => {
    const { stdout, status } = npmTest({
      'src/a.test.ts': passing,
      'vitest.config.ts': "throw new Error('broken');\n",
    });
    expect(stdout).toContain('failed: vitest ended with 1');
    expect(lastLine(stdout)).toMatch(/^\d passed, [12] failed, 0 skipped$/);
    expect(status).toBe(1);
  });

  it('refuses a skip in CI', () => {
    const { stdout, status } = npmTest({ 'src/a.test.ts': passing.replace('it(', 'it.skip(') }, { CI: 'true' });
    expect(stdout).toContain('CI allows no such skip');
    expect(lastLine(stdout)).toBe('2 passed, 1 failed, 0 skipped');
    expect(status).toBe(1);
  });
});

function npmTest(files: Record<string, string>, env: Record<string, string> = {}) {
  const tree = newTree({ installed: true });
  spawnSync('git', ['init', '--quiet'], { cwd: tree.folder });
  tree.write('src/index.ts', 'export const main = true;\n');
  for (const [file, text] of Object.entries(files)) tree.write(file, text);
  return tree.node(['scripts/test.mjs'], env);
}

function lastLine(text: string): string | undefined {
  return text.trimEnd().split('\n').at(-1);
}
