/** The conformance suite of all engines. The test of an engine calls it with a function that opens one. */
import { describe } from 'vitest';
import { atomicity } from './atomicity.ts';
import { checks } from './checks.ts';
import { counters } from './counters.ts';
import { groupCommit } from './group-commit.ts';
import type { Harness } from './harness.ts';
import { maxima } from './maxima.ts';
import { pages } from './pages.ts';
import { reads } from './reads.ts';
import { scans } from './scans.ts';
import { serializability } from './serializability.ts';
import { time } from './time.ts';
import { volatileRows } from './volatile.ts';

export type { OtherWriter, Store } from './harness.ts';

export function partitionConformance(name: string, harness: Harness): void {
  describe(`a partition on ${name}`, () => {
    for (const part of [
      atomicity,
      serializability,
      reads,
      scans,
      pages,
      groupCommit,
      checks,
      counters,
      maxima,
      time,
      volatileRows,
    ])
      part(harness);
  });
}
