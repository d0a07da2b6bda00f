/** The fast suites of smbtorture: each subtest passes, or expected-failures.mjs has the reason. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startHoldfastSmb } from '../support/smb-target.mjs';
import { reasonsByTest } from './expected-failures.mjs';
import { suites } from './suites.mjs';
import { noTorture, runSuite } from './torture.mjs';

describe.skipIf(noTorture)(`smbtorture${noTorture ? ` (${noTorture})` : ''}`, () => {
  let server: Awaited<ReturnType<typeof startHoldfastSmb>>;
  beforeAll(async () => {
    server = await startHoldfastSmb();
  });
  afterAll(() => server?.stop());

  it.each(suites.filter(({ fast }) => fast))('$name', { timeout: 240_000 }, async (suite) => {
    const { outcomes, reasons, timedOut, output } = await runSuite(server, suite);
    expect(timedOut, output.slice(-2_000)).toBe(false);
    expect(outcomes.size).toBeGreaterThan(0);
    const failed = [...outcomes].filter(([name, outcome]) => outcome === 'failed' && !reasonsByTest.has(name));
    expect(failed.map(([name]) => `${name}: ${reasons.get(name)}`)).toEqual([]);
  });
});
