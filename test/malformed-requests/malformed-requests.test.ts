/** Mutated requests of our own tests: the server answers each, and works afterwards as before. */
import { describe, expect, it } from 'vitest';
import { play } from './play.mjs';

const COUNT = 50_000;

describe('A server that gets malformed requests', () => {
  it('answers each within 5 s, with an error of the service and never a bug', { timeout: 300_000 }, async () => {
    const seed = Number(process.env.HOLDFAST_SEED ?? 4);
    const { faults, done, seen, output } = await play({ seed, count: COUNT });
    const details = faults.map(
      ({ number, what, request }) =>
        `${what}\nnpm run test:malformed-requests -- --seed ${seed} --case ${number}\n${request ?? ''}`,
    );
    expect(details, output).toEqual([]);
    expect(done).toBe(COUNT);
    // Most reach an operation: cases that authentication refuses prove little.
    const stopped = (seen.get('403 AuthenticationFailed') ?? 0) + (seen.get('401 NoAuthenticationInformation') ?? 0);
    expect(stopped).toBeLessThan(COUNT / 4);
    expect([...seen.keys()].filter((word) => /^20/.test(word)).length).toBeGreaterThan(3);
  });
});
