/** Mutated packets of SMB clients: the server answers each or ends its connection, and other clients notice nothing. */
import { expect, it } from 'vitest';
import { play } from './play.mjs';

const COUNT = 2_000;

it('A malformed packet ends at most its own connection', { timeout: 300_000 }, async () => {
  const seed = Number(process.env.HOLDFAST_SEED ?? 4);
  const { faults, done, seen, output } = await play({ seed, count: COUNT });
  const details = faults.map(
    ({ number, what, packet }) =>
      `${what}\nnpm run test:malformed-packets -- --seed ${seed} --first ${number} --count 1\n${packet ?? ''}`,
  );
  expect(details, output).toEqual([]);
  expect(done).toBe(COUNT);
  // Most reach a command: packets that end the connection prove little.
  expect(seen.get('STATUS_SUCCESS')).toBeGreaterThan(COUNT / 5);
  expect(seen.get('ended')).toBeLessThan(COUNT / 4);
});
