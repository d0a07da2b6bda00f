import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TICKS_PER_SECOND } from '../../base/time.ts';
import { afterFlush, afterWrite, NO_WRITES, shownLastWrite, writeShownByClose } from './write-times.ts';

const second = (n: number): bigint => BigInt(n) * TICKS_PER_SECOND;
const write = (times: typeof NO_WRITES, before: number, stored: number) =>
  afterWrite(times, { before: second(before), stored: second(stored) });

describe('The time of the last write, as the open that writes shows it', () => {
  it('is that of the first write two seconds later, and closing changes nothing', () => {
    const times = write(NO_WRITES, 1, 10);
    expect(shownLastWrite(times, second(10), second(11))).toBe(second(1));
    expect(shownLastWrite(times, second(10), second(12))).toBe(second(10));
    expect(writeShownByClose(times)).toBeUndefined();
  });

  it('is that of the last of the writes in these two seconds', () => {
    const times = write(write(NO_WRITES, 1, 10), 10, 11);
    expect(shownLastWrite(times, second(11), second(11))).toBe(second(1));
    expect(shownLastWrite(times, second(11), second(12))).toBe(second(11));
  });

  it('stays after a later write until the close', () => {
    const times = write(write(NO_WRITES, 1, 10), 10, 20);
    expect(shownLastWrite(times, second(20), second(1_000))).toBe(second(10));
    expect(writeShownByClose(times)).toBe(second(20));
    const more = write(times, 20, 30);
    expect(shownLastWrite(more, second(30), second(1_000))).toBe(second(10));
    expect(writeShownByClose(more)).toBe(second(30));
  });

  it('shows at once after a flush, but that of a write after it only by the close', () => {
    const flushed = afterFlush(write(NO_WRITES, 1, 10));
    expect(shownLastWrite(flushed, second(10), second(10))).toBe(second(10));
    expect(writeShownByClose(flushed)).toBeUndefined();
    expect(shownLastWrite(write(flushed, 10, 11), second(11), second(100))).toBe(second(10));
  });

  it('is what another client has set meanwhile', () => {
    expect(shownLastWrite(write(NO_WRITES, 1, 10), second(5), second(11))).toBe(second(5));
  });

  it('is always one that the file has had, whatever the order of writes and flushes', () => {
    const step = fc.record({ isFlush: fc.boolean(), pause: fc.nat(4) });
    fc.assert(
      fc.property(fc.array(step), fc.nat(4), (steps, wait) => {
        let [times, now, stored] = [NO_WRITES, 0, 0];
        const had = new Set([second(0)]);
        for (const { isFlush, pause } of steps) {
          now += pause;
          if (isFlush) times = afterFlush(times);
          else times = write(times, stored, now);
          if (!isFlush) stored = now;
          had.add(second(stored));
        }
        expect(had).toContain(shownLastWrite(times, second(stored), second(now + wait)));
      }),
    );
  });
});
