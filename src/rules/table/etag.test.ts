import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatTableEtag, parseIfMatch } from './entity-group.ts';

/** 2017-11-10T02:47:54Z */
const SECOND = 636458788740000000n;

describe('The ETag of an entity', () => {
  it.each([
    [9_431_592n, `W/"datetime'2017-11-10T02%3A47%3A54.9431592Z'"`],
    [7_458_860n, `W/"datetime'2017-11-10T02%3A47%3A54.745886Z'"`],
    [10n, `W/"datetime'2017-11-10T02%3A47%3A54.000001Z'"`],
    [0n, `W/"datetime'2017-11-10T02%3A47%3A54Z'"`],
  ])('is its Timestamp, with zeros at the end of the fraction left out', (fraction, etag) => {
    expect(formatTableEtag(SECOND + fraction)).toBe(etag);
  });

  it('parses to the version that it was made of', () => {
    const version = fc.bigInt({ min: 504911232000000000n, max: 3155378975999999999n });
    fc.assert(fc.property(version, (given) => parseIfMatch(formatTableEtag(given)) === given));
  });
});

describe('If-Match', () => {
  it('is met by any entity with an asterisk', () => {
    expect(parseIfMatch('*')).toBe('any');
  });

  it('accepts an instant with unescaped colons, too', () => {
    expect(parseIfMatch(`W/"datetime'2017-11-10T02:47:54.1Z'"`)).toBe(SECOND + 1_000_000n);
    expect(parseIfMatch(`W/"datetime'2017-11-10T02%3a47%3a54Z'"`)).toBe(SECOND);
  });

  it.each(['W/"wrong"', 'W/""', `W/"datetime'2017-13-10T02%3A47%3A54Z'"`, `W/"datetime'2017-11-10'"`])(
    'meets no entity with %s',
    (text) => {
      expect(parseIfMatch(text)).toBe('none');
    },
  );

  it.each(['', 'wrong', '"wrong"', 'w/"wrong"', 'W/"a", W/"b"', 'W/"a"b"', '**', '*, *'])(
    'is one weak ETag, unlike %j',
    (text) => {
      expect(parseIfMatch(text)).toBeUndefined();
    },
  );
});
