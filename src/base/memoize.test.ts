import { describe, expect, it } from 'vitest';
import { copyString, memoize } from './memoize.ts';

describe('What is kept by text', () => {
  const counted = () => {
    const made: string[] = [];
    const of = memoize((text) => {
      made.push(text);
      if (text === 'bad') throw new Error('bad');
      return { text };
    });
    return { made, of };
  };

  it('is computed once, and again if the computation failed', () => {
    const { made, of } = counted();
    expect(of('a')).toBe(of('a'));
    expect(of('b')).toEqual({ text: 'b' });
    expect(() => of('bad')).toThrow('bad');
    expect(() => of('bad')).toThrow('bad');
    expect(made).toEqual(['a', 'b', 'bad', 'bad']);
  });

  it('takes bounded memory, whatever the texts', () => {
    const { made, of } = counted();
    for (let number = 0; number < 5_000; number++) of(String(number));
    expect(of('0')).toEqual({ text: '0' });
    expect(made.filter((text) => text === '0')).toHaveLength(2);
    const long = 'x'.repeat(100_000);
    expect(of(long)).not.toBe(of(long));
  });

  it('stays while it is used, however many others come', () => {
    const { made, of } = counted();
    for (let number = 0; number < 10_000; number++) {
      of(String(number));
      if (number % 100 === 0) of('used');
    }
    expect(made.filter((text) => text === 'used')).toHaveLength(1);
  });

  it('depends on every character of the text', () => {
    for (const text of ['', 'plain', 'é', '😀', '\ud800', '\0']) expect(copyString(text)).toBe(text);
  });
});
