import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatIso7 } from '../../base/time.ts';
import { type AskedTime, type FileTimes, parseTime, resolveTimes } from './times.ts';

const FIRST = 504_911_232_000_000_000n;
const LAST = 3_155_378_975_999_999_999n;
const instant = fc.bigInt({ min: FIRST, max: LAST });

describe('A time of a request', () => {
  it('is exact to a tenth of a microsecond', () => {
    fc.assert(fc.property(instant, (ticks) => parseTime(formatIso7(ticks), ['now']) === ticks));
    expect(parseTime('2022-03-10T10:14:30.5000000Z', [])).toBe(637825040705000000n);
  });

  it('is one of the words of the operation, in any case', () => {
    expect(parseTime('Now', ['now', 'preserve'])).toBe('now');
    expect(parseTime('PRESERVE', ['now', 'preserve'])).toBe('preserve');
    expect(parseTime('source', ['now', 'preserve'])).toBeUndefined();
  });

  it.each(['', 'yesterday', '2022-03-10', '2022-02-30T00:00:00Z', '1600-12-31T23:59:59.9999999Z', '-1', '0'])(
    'is not %j',
    (text) => {
      expect(parseTime(text, ['now', 'preserve', 'source'])).toBeUndefined();
    },
  );
});

describe('The times of a file', () => {
  const times = fc.record<FileTimes>({ creation: instant, lastWrite: instant, change: instant });

  it('are those of the request, the present, or what was there', () => {
    const asked = fc.oneof<fc.Arbitrary<AskedTime>[]>(instant, fc.constantFrom('now', 'preserve', 'source'));
    const all = fc.record({ creation: asked, lastWrite: asked, change: asked });
    fc.assert(
      fc.property(all, instant, fc.option(times, { nil: undefined }), (wanted, now, current) => {
        const resolved = resolveTimes(wanted, now, current);
        for (const name of ['creation', 'lastWrite', 'change'] as const) {
          const value = wanted[name];
          const kept = current === undefined ? now : current[name];
          expect(resolved[name]).toBe(typeof value === 'bigint' ? value : value === 'now' ? now : kept);
        }
      }),
    );
  });
});
