/** The suite that every engine passes. An engine's test names it and hands over a way to open one. */
import { describe } from 'vitest';
import { atomicity } from './conformance/atomicity.ts';
import { checks } from './conformance/checks.ts';
import { combining } from './conformance/combining.ts';
import { counters } from './conformance/counters.ts';
import type { Harness } from './conformance/harness.ts';
import { pages } from './conformance/pages.ts';
import { reads } from './conformance/reads.ts';
import { scans } from './conformance/scans.ts';
import { serializability } from './conformance/serializability.ts';
import { time } from './conformance/time.ts';

export type { Harness, OtherWriter, Store, StoreOptions } from './conformance/harness.ts';

export function partitionConformance(name: string, harness: Harness): void {
  describe(`a partition on ${name}`, () => {
    for (const part of [atomicity, serializability, reads, scans, pages, combining, checks, counters, time])
      part(harness);
  });
}
