import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatMessageId, formatReceipt, parseMessageId, parseReceipt } from './messages.ts';

const instant = fc.bigInt({ min: 0n, max: (1n << 62n) - 1n });
const id = fc.record({ inserted: instant, salt: fc.bigInt({ min: 0n, max: (1n << 60n) - 1n }) });
const receipt = fc.record({ visibleAt: instant, nonce: fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }) });
const GUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('A message id', () => {
  it('is a GUID from which instant and salt can be parsed, in any case', () => {
    fc.assert(
      fc.property(id, (given) => {
        expect(formatMessageId(given)).toMatch(GUID);
        expect(parseMessageId(formatMessageId(given))).toEqual(given);
        expect(parseMessageId(formatMessageId(given).toUpperCase())).toEqual(given);
      }),
    );
  });

  it('rises with the instant', () => {
    fc.assert(
      fc.property(id, id, (one, other) => {
        const [first, second] = [one, other].map((each) => formatMessageId(each).slice(0, 18));
        if (one.inserted >> 2n < other.inserted >> 2n) expect(first! < second!).toBe(true);
      }),
    );
  });

  it.each(['', 'x', '00000000-0000-0000-0000-000000000000', '{00000000-0000-4000-8000-000000000000}', 'é'])(
    'is not %j',
    (text) => {
      expect(parseMessageId(text)).toBeUndefined();
    },
  );
});

describe('A pop receipt', () => {
  it('round-trips the visibility key and the nonce, and needs no escaping', () => {
    fc.assert(
      fc.property(receipt, (given) => {
        expect(encodeURIComponent(formatReceipt(given))).toBe(formatReceipt(given));
        expect(parseReceipt(formatReceipt(given))).toEqual(given);
      }),
    );
  });

  it('has one text only', () => {
    const text = fc.stringMatching(/^AQA[\w-]{21}$/);
    fc.assert(
      fc.property(text, (given) => {
        const parsed = parseReceipt(given);
        if (parsed) expect(formatReceipt(parsed)).toBe(given);
      }),
    );
  });

  it.each([
    '',
    'a',
    'AgAAAAMAAAAAAAAA3XFeemNE2AE=',
    'AQA'.padEnd(25, 'A'),
    'AgA'.padEnd(24, 'A'),
    'AQC'.padEnd(24, '_'),
  ])('is not %j', (text) => {
    expect(parseReceipt(text)).toBeUndefined();
  });
});
