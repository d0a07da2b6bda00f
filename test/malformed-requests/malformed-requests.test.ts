/** Mutated requests of our own tests: the server answers each, and works afterwards as before. */
import { describe, expect, it } from 'vitest';
import { play } from './play.mjs';

const COUNTS = [
  ['blob', 50_000],
  ['file', 25_000],
] as const;

describe('A server that gets malformed requests', () => {
  const title = 'of the %s service answers each within 5 s, with an error of the service and never a bug';
  it.each(COUNTS)(title, { timeout: 300_000 }, async (service, count) => {
    const seed = Number(process.env.HOLDFAST_SEED ?? 4);
    const { faults, done, seen, output } = await play({ seed, service, count });
    const details = faults.map(
      ({ number, what, request }) =>
        `${what}\nnpm run test:malformed-requests -- --service ${service} --seed ${seed} --case ${number}\n${request ?? ''}`,
    );
    expect(details, output).toEqual([]);
    expect(done).toBe(count);
    // Most reach an operation: cases that authentication refuses prove little.
    const stopped = (seen.get('403 AuthenticationFailed') ?? 0) + (seen.get('401 NoAuthenticationInformation') ?? 0);
    expect(stopped).toBeLessThan(count / 4);
    expect([...seen.keys()].filter((word) => /^20/.test(word)).length).toBeGreaterThan(3);
  });
});
