import { describe, expect, it } from 'vitest';
import { startClock } from './clock.ts';

const SECOND = 10_000_000n;
const YEAR = 365n * 86_400n * SECOND;
const NOON = 638_000_000_000_000_000n;

/** A machine whose two clocks a test moves. */
function newMachine() {
  let [wall, monotonic, slept] = [NOON, 0n, 0n];
  const clock = startClock({ wall: () => wall, monotonic: () => monotonic, sinceBoot: () => monotonic + slept });
  return {
    clock,
    /** How far the store's time is past noon. */
    passed: () => clock.now() - NOON,
    /** Both clocks advance, and the time is read now and then. */
    run(seconds: bigint) {
      for (let tenth = 0n; tenth < seconds * 10n; tenth++) {
        wall += SECOND / 10n;
        monotonic += SECOND / 10n;
        clock.now();
      }
    },
    jump(ticks: bigint) {
      wall += ticks;
    },
    sleep(ticks: bigint) {
      wall += ticks;
      slept += ticks;
    },
  };
}

describe('The clock of a store', () => {
  it('forgets a wrong reading of the wall clock', () => {
    const { clock, run, jump, passed } = newMachine();
    run(10n);
    jump(10n * YEAR);
    run(1n);
    jump(-10n * YEAR);
    run(60n);
    expect(passed()).toBe(71n * SECOND);
    expect(clock.nextTimestamp()).toBeLessThan(NOON + 72n * SECOND);
  });

  it('forgets any number of them that do not last', () => {
    const { run, jump, passed } = newMachine();
    for (let i = 0; i < 10; i++) {
      jump(YEAR);
      run(4n);
      jump(-YEAR);
      run(1n);
    }
    expect(passed()).toBe(50n * SECOND);
  });

  it('counts the time of a suspension at once, and once', () => {
    const { run, sleep, jump, passed } = newMachine();
    run(10n);
    sleep(3600n * SECOND);
    run(1n);
    expect(passed()).toBe(3611n * SECOND);
    jump(1800n * SECOND);
    run(4n);
    expect(passed()).toBe(3615n * SECOND);
    jump(-1800n * SECOND);
    sleep(3600n * SECOND);
    run(1n);
    expect(passed()).toBe(7216n * SECOND);
  });

  it('follows a wall clock that stays ahead, as in a virtual machine that was frozen', () => {
    const { run, jump, passed } = newMachine();
    run(10n);
    jump(3600n * SECOND);
    run(4n);
    expect(passed()).toBe(14n * SECOND);
    run(2n);
    expect(passed()).toBe(3616n * SECOND);
  });

  it('takes the least of what was seen meanwhile', () => {
    const { run, jump, passed } = newMachine();
    jump(10n * YEAR);
    run(3n);
    jump(3600n * SECOND - 10n * YEAR);
    run(3n);
    expect(passed()).toBe(3606n * SECOND);
  });

  it('does not take time that a test moved for a wrong reading, or for time that has stood', async () => {
    const { clock, run, jump, passed } = newMachine();
    await clock.advance(100n * SECOND);
    jump(YEAR);
    run(1n);
    await clock.advance(100n * SECOND);
    run(1n);
    jump(-YEAR);
    run(10n);
    expect(passed()).toBe(212n * SECOND);
  });
});
