/** `npm run test:failover` does it three times in a row, in three ways. */
import { describe, expect, it } from 'vitest';
import { failover } from '../failover/rounds.ts';
import { newFolder } from '../support/disposable-servers.ts';
import { missing } from '../support/postgres-cluster.ts';

const rounds = Number(process.env.HOLDFAST_FAILOVER_ROUNDS ?? 1);
const isLong = rounds > 1;

describe.skipIf(missing)(`A primary that dies under load${missing ? ` (${missing})` : ''}`, () => {
  const timeout = 60_000 + rounds * 60_000;

  it('loses no acknowledged write if its standby is synchronous', { timeout }, async () => {
    const { faults, acknowledged, outageSeconds } = await failover({
      rounds,
      extents: newFolder(),
      onRound: (line) => console.log(line),
    });
    const lost = faults.filter((fault) => fault.startsWith('GET')).length;
    console.log(`${acknowledged} acknowledged, ${lost} lost or wrong, ${faults.length - lost} other faults`);
    expect(faults).toEqual([]);
    expect(outageSeconds).toHaveLength(rounds);
    expect(acknowledged).toBeGreaterThan(0);
  });

  if (isLong) {
    it('is found out if its standby is not', { timeout }, async () => {
      const { faults } = await failover({ rounds: 1, extents: newFolder(), synchronous: false });
      expect(faults.filter((fault) => fault.startsWith('GET')).length).toBeGreaterThan(0);
    });
  }
});
