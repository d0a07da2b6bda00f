import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { crash } from './rounds.mjs';

const ROUNDS = 5;

describe('A server that is killed at a random moment', () => {
  it('has every acknowledged write and nothing half-written', { timeout: 120_000 }, async () => {
    const location = mkdtempSync(join(tmpdir(), 'holdfast-crash-'));
    onTestFinished(() => rmSync(location, { recursive: true, force: true }));
    const seed = Date.now() % 2 ** 31;
    console.log(`npm run test:crash -- --rounds ${ROUNDS} --seed ${seed}`);
    const { faults, rounds, acknowledged } = await crash({ location, rounds: ROUNDS, seed });
    expect(faults).toEqual([]);
    expect(rounds).toBe(ROUNDS);
    expect(acknowledged).toBeGreaterThan(0);
  });
});
