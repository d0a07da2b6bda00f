/** Validation of a commit whose snapshot is known: only what was written since is looked at. */
import { COUNTER_BYTES, type Commit, type Instant } from '../partition.ts';
import type { holds, Versions } from '../verify.ts';
import type { Generation } from './overlay.ts';

/**
 * As `holds`, where every group after the snapshot's is in one of these generations. A stamp was proposed after its snapshot was taken, and
 * the clock has observed every version that was stored before: so only a row that was written since can be in its way.
 */
export function holdsSince(
  group: number,
  { before, checks, ranges, bodies }: Commit,
  generations: readonly Generation[],
  latest: Versions,
  now: Instant,
): ReturnType<typeof holds> {
  if (before !== undefined && now >= before) return 'changed';
  for (const generation of generations) {
    for (const { key } of checks) if (generation.changeSince(group, key)) return 'changed';
    for (const { range } of ranges) if (generation.hasChangeSince(group, range)) return 'changed';
  }
  for (const { stamp, writes } of bodies) {
    for (const { kind, key } of writes) {
      if (kind === 'add') {
        const bytes = latest.bytesOf(key) ?? COUNTER_BYTES;
        if (bytes !== COUNTER_BYTES) return { mistake: `a counter is added to a row of ${bytes} bytes` };
        continue;
      }
      for (const generation of generations) {
        const version = generation.changeSince(group, key)?.version;
        if (version !== undefined && version >= stamp) return { inTheWay: version };
      }
    }
  }
  return 'holds';
}
