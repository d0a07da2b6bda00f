/** The work for a request grows linearly with its size, and has a bound. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { send } from '../support/raw-requests.mjs';
import { attacks } from './attacks.mjs';
import { startCountedServer } from './counted-server.mjs';

/** Sorting is a little more than linear. */
const RATIO_MAX = 2.5;
/** About 10 ms: a step takes from one to ten nanoseconds. */
const STEPS_MAX = 2_000_000;
const FAR = 4;
/** To receive a body, to join it and to make text of it. */
const STEPS_PER_BYTE = 4;
/** To make and send an error. */
const REFUSAL_STEPS = 1_000;
/** A refusal names the fault, and does not echo the whole request. */
const REFUSAL_MAX = 8 << 10;
/** The first measurement may profit from the caches of a smaller request. */
const ROUNDS = 3;

describe('What one request holds', () => {
  let server: Awaited<ReturnType<typeof startCountedServer>>;
  beforeAll(async () => {
    server = await startCountedServer();
  });
  afterAll(() => server.stop());

  describe.each(attacks)('$name', ({ n, request, status, past, prepare, stepsMax = STEPS_MAX }) => {
    const sendTo = (made: ReturnType<typeof request>) => send(server.port(made.service ?? 'blob'), made);
    const stepsOf = async (size: number, expected: number) => {
      const made = request(size);
      const steps: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        await server.takeSteps();
        const answer = await sendTo(made);
        expect(answer.status).toBe(expected);
        if (expected >= 400) expect(answer.text.length).toBeLessThan(REFUSAL_MAX);
        steps.push(await server.takeSteps());
      }
      return steps.sort((one, other) => one - other)[ROUNDS >> 1]!;
    };
    beforeAll(() => prepare?.(sendTo));

    it('costs at most two and a half times as many steps when it is twice as much', async () => {
      const least = await stepsOf(1, status);
      const once = (await stepsOf(n, status)) - least;
      const twice = (await stepsOf(2 * n, status)) - least;
      console.log(`${least} steps for one, ${once} more for ${n}, ${twice} more for ${2 * n}`);
      expect(twice / once).toBeLessThan(RATIO_MAX);
      expect(twice).toBeLessThan(stepsMax);
    });

    if (!past) return;
    it('is refused beyond its limit, and costs no more than the largest accepted one, however large it is', async () => {
      const most = await stepsOf(2 * n, status);
      for (const size of [past.n, FAR * past.n]) {
        const received = STEPS_PER_BYTE * Buffer.byteLength(request(size).body ?? '');
        expect(await stepsOf(size, past.status)).toBeLessThan(most + received + REFUSAL_STEPS);
      }
    });
  });
});
