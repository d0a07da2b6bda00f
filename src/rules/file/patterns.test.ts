import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { foldName } from './folding.ts';
import { matchesPattern, parsePattern, patternCost } from './patterns.ts';

const matches = (pattern: string, name: string) => matchesPattern(parsePattern(pattern), foldName(name));

describe('A search pattern', () => {
  const cases: [pattern: string, name: string, matches: boolean][] = [
    ['*', '', true],
    ['*', 'a.b', true],
    ['a*', 'Ab', true],
    ['a*', 'ba', false],
    ['*.txt', 'one.TXT', true],
    ['*.txt', 'one.txt.bak', false],
    ['*.*', 'plain', false],
    ['?', 'a', true],
    ['?', 'ab', false],
    ['??', 'a', false],
    ['file', 'FILE', true],
    ['file', 'files', false],
    ['ÄÖ?', 'äöü', true],
    // DOS_STAR: up to the last dot.
    ['<.txt', 'a.b.txt', true],
    ['<.b', 'a.b.txt', false],
    ['<', 'plain', true],
    ['<', 'a.b', false],
    ['<"', 'a.', true],
    ['<.', 'a.b.', true],
    ['<"*', 'a.b.c', true],
    ['<"*', 'plain', true],
    // DOS_QM: a character, or nothing before a dot and at the end.
    ['>>>', 'ab', true],
    ['>>>', 'abcd', false],
    ['>>>.c', 'ab.c', true],
    ['>.c', 'ab.c', false],
    ['>', '.', false],
    ['>>>>>>>>"txt', 'name.txt', true],
    // DOS_DOT: a dot, or nothing at the end.
    ['a"', 'a', true],
    ['a"', 'a.', true],
    ['a"', 'ab', false],
    ['a"b', 'a.b', true],
    ['a"b', 'ab', false],
  ];
  it.each(cases)('%s matches %s: %s', (pattern, name, expected) => {
    expect(matches(pattern, name)).toBe(expected);
  });

  it('matches as a backtracking matcher that follows the text of MS-FSA does', () => {
    const unit = fc.constantFrom('a', 'b', '.');
    const name = fc.string({ unit, maxLength: 8 });
    const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '.', '*', '?', '<', '>', '"'), maxLength: 7 });
    fc.assert(
      fc.property(pattern, name, (p, n) => {
        expect(matches(p, n)).toBe(backtrack(p.toUpperCase(), n.toUpperCase(), n.toUpperCase()));
      }),
      { numRuns: 20_000 },
    );
  });

  it('takes no longer for a pattern that makes a backtracking matcher exponential', () => {
    const pattern = `${'*a'.repeat(120)}b`;
    expect(matches(pattern, 'a'.repeat(255))).toBe(false);
    expect(patternCost(parsePattern(pattern))).toBe(241);
  });

  it('names the prefix by which a listing can begin', () => {
    expect(parsePattern('ab*c')).toEqual({ prefix: 'AB', rest: '*C' });
    expect(parsePattern('**')).toEqual({ prefix: '', rest: '*' });
  });
});

/** Tries every way; it has no automaton and no prefix. */
function backtrack(pattern: string, name: string, whole: string): boolean {
  const [first] = pattern;
  const rest = pattern.slice(1);
  const isLastDot = name[0] === '.' && whole.lastIndexOf('.') === whole.length - name.length;
  if (first === undefined) return name === '';
  if (first === '*' || first === '<') {
    if (backtrack(rest, name, whole)) return true;
    return name !== '' && !(first === '<' && isLastDot) && backtrack(pattern, name.slice(1), whole);
  }
  if (first === '>' && (name === '' || name[0] === '.')) return backtrack(rest, name, whole);
  if (first === '"' && name === '') return backtrack(rest, name, whole);
  if (name === '') return false;
  const eats = first === '?' || first === '>' || first === name[0] || (first === '"' && name[0] === '.');
  return eats && backtrack(rest, name.slice(1), whole);
}
