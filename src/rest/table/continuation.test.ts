import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StorageError } from '../../services/common/errors.ts';
import { decodeToken, encodeToken } from './continuation.ts';

describe('A continuation token', () => {
  it('has the form that clients have seen', () => {
    expect(encodeToken('pk')).toBe('1!4!cGs-');
    expect(encodeToken('1012')).toBe('1!8!MTAxMg--');
    expect(encodeToken('')).toBe('1!0!');
  });

  it('leads back to the key, whatever it holds, and can stand in a URL', () => {
    const units = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 20 });
    fc.assert(
      fc.property(units, (codes) => {
        const key = String.fromCharCode(...codes);
        expect(encodeToken(key)).toMatch(/^1![0-9]+![A-Za-z0-9_*-]*$/);
        expect(decodeToken(encodeToken(key))).toBe(key);
      }),
    );
  });

  it.each([
    '',
    'pk',
    '1!4!',
    '1!4!cGs',
    '1!3!cGs',
    '2!4!cGs-',
    '1!4!c Gs',
    '1!-1!',
    '1!4!cG--cGs-',
    '1!4!%%%%',
    "1!1!'",
  ])('%s is refused', (token) => {
    expect(() => decodeToken(token)).toThrow(StorageError);
  });
});
