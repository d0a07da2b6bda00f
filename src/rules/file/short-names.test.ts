import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatShortName, parseShortName } from './short-names.ts';

const LARGEST = 36n ** 10n - 1n;

describe('A name of 8.3 characters', () => {
  it.each(['a', 'README', 'readme.txt', 'ABCDEFGH.IJK', 'a~1.b', '$x(1).{a}'])('has no second one: %s', (name) => {
    expect(formatShortName(name, 1n)).toBeUndefined();
  });

  it.each(['longer than that', 'a.html', 'a.b.c', '.git', 'a b', 'ä', 'x+y', 'ABCDEFGHI'])(
    'is made for %j, and leads back to its number',
    (name) => {
      expect(formatShortName(name, 123_456_789n)).toBe('000021~I.3V9');
      expect(parseShortName('000021~I.3V9')).toBe(123_456_789n);
    },
  );

  it('is another for each number, and none for one that is too great', () => {
    fc.assert(
      fc.property(fc.bigInt(0n, LARGEST), (number) => {
        const name = formatShortName('a long name', number)!;
        expect(formatShortName(name, 0n)).toBeUndefined();
        expect(parseShortName(name)).toBe(number);
      }),
    );
    expect(formatShortName('a long name', LARGEST + 1n)).toBeUndefined();
    expect(formatShortName('a long name', -1n)).toBeUndefined();
  });

  it.each(['', 'A', '000021~I.3V', '000021~I.3V90', '00002-~I.3V9', 'x000021~I.3V9', 'READ~1.TXT'])(
    'is not read from %j',
    (name) => expect(parseShortName(name)).toBeUndefined(),
  );
});
