/** Work grows with what a request holds, not with its square, and ends at a bound. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attacks } from './attacks.mjs';
import { startCountedServer } from './counted-server.mjs';
import { send } from './requests.mjs';

/** Sorting is a little more than linear. */
const RATIO_MAX = 2.5;
/** About 10 ms: a step takes from one to ten nanoseconds. */
const STEPS_MAX = 2_000_000;
/** What else the server does meanwhile is never less than nothing. */
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
      let fewest = Number.POSITIVE_INFINITY;
      for (let round = 0; round < ROUNDS; round++) {
        await server.takeSteps();
        expect((await sendTo(made)).status).toBe(expected);
        fewest = Math.min(fewest, await server.takeSteps());
      }
      return fewest;
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

    it.runIf(past)('is refused before it is worked on when it is too much', async () => {
      const least = await stepsOf(1, status);
      expect(await stepsOf(past!.n, past!.status)).toBeLessThan(least + past!.n);
    });
  });
});
