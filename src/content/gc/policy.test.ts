import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isMostlyVisible } from '../ranges/map-page.ts';
import { type ExtentUse, planCollection } from './policy.ts';

const MIB = 1 << 20;
const EXTENT_BYTES = 64 * MIB;
/** The least share of the chunks of a content that changes in place that can be seen, once its map pages are merged. */
const VISIBLE_MIN =
  Array.from({ length: 1_001 }, (_, i) => i).find((visible) => isMostlyVisible(visible, 1_000))! / 1_000;

const anExtent = fc
  .record({
    bytes: fc.integer({ min: 1, max: EXTENT_BYTES }),
    // Often nothing or everything.
    share: fc.oneof(fc.constantFrom(0, 1), fc.double({ min: 0, max: 1, noNaN: true })),
  })
  .map(({ bytes, share }) => ({ bytes, live: Math.floor(bytes * share) }));
const aFolder = fc
  .record({
    sealed: fc.array(anExtent, { maxLength: 120 }),
    open: fc.array(anExtent, { maxLength: 4 }),
  })
  .map(({ sealed, open }): ExtentUse[] =>
    [...sealed.map((use) => ({ ...use, open: false })), ...open.map((use) => ({ ...use, open: true }))].map(
      (use, i) => ({ ...use, name: `1-${i}`, pinned: false }),
    ),
  );

describe('The garbage collection policy', () => {
  it('keeps the folder below 1.3 times what is visible of live chunks, and 256 MiB, and comes to an end', () => {
    fc.assert(
      fc.property(aFolder, (folder) => {
        const { after, copied, freed } = follow(folder);
        expect(sum(after, 'live')).toBe(sum(folder, 'live'));
        const visible = VISIBLE_MIN * sum(after, 'live');
        expect(sum(after, 'bytes')).toBeLessThanOrEqual(1.3 * visible + 256 * MIB);
        expect(copied).toBeLessThanOrEqual(8 * freed);
      }),
      { numRuns: 300 },
    );
  });

  it('does so however large the folder is: at any share of live bytes enough of it is compacted', () => {
    for (let live = EXTENT_BYTES / 2; live <= EXTENT_BYTES; live += EXTENT_BYTES / 128) {
      const use = { bytes: EXTENT_BYTES, live, open: false, pinned: false };
      const folder = Array.from({ length: 1_000 }, (_, i) => ({ ...use, name: `1-${i}` }));
      const compacted = planCollection(folder).compact.length;
      const bytes = compacted * live + (folder.length - compacted) * EXTENT_BYTES;
      expect(bytes).toBeLessThanOrEqual(1.3 * VISIBLE_MIN * sum(folder, 'live') + 256 * MIB);
    }
  });

  it('leaves extents in which an upload runs as they are', () => {
    const use = { bytes: EXTENT_BYTES, live: 0, pinned: true };
    const folder = Array.from({ length: 20 }, (_, i) => ({ ...use, name: `1-${i}`, open: i === 0 }));
    expect(planCollection(folder)).toEqual({ remove: [], seal: [], compact: [], isUrgent: false });
  });

  it('copies nothing for bytes that it could not reclaim', () => {
    const full = { bytes: EXTENT_BYTES, live: EXTENT_BYTES * 0.95, open: false, pinned: false };
    const running = { bytes: EXTENT_BYTES, live: 0, open: true, pinned: true };
    const folder = Array.from({ length: 40 }, (_, i) => ({ ...(i % 2 ? full : running), name: `1-${i}` }));
    expect(planCollection(folder)).toEqual({ remove: [], seal: [], compact: [], isUrgent: false });
  });

  it('takes the sparsest first', () => {
    const folder = [0.9, 0.1, 0.5, 0.3].map((share, i) => ({
      name: `1-${i}`,
      bytes: EXTENT_BYTES,
      live: EXTENT_BYTES * share,
      open: false,
      pinned: false,
    }));
    expect(planCollection(folder).compact).toEqual(['1-1', '1-3']);
  });

  it('wins back what it can when there is no space, but not at any price', () => {
    const use = { bytes: EXTENT_BYTES, pinned: false };
    const folder = [
      { ...use, name: 'open', open: true, live: EXTENT_BYTES * 0.8 },
      { ...use, name: 'sealed', open: false, live: EXTENT_BYTES * 0.8 },
      { ...use, name: 'full', open: false, live: EXTENT_BYTES * 0.97 },
    ];
    expect(planCollection(folder)).toMatchObject({ seal: [], compact: [] });
    expect(planCollection(folder, undefined, true)).toMatchObject({ seal: ['open'], compact: ['sealed'] });
  });
});

/** Does what is chosen until nothing is: copies go to the end of an open extent, which is sealed when it is full. */
function follow(folder: readonly ExtentUse[]): { after: ExtentUse[]; copied: number; freed: number } {
  let after = [...folder];
  let [copied, freed, made] = [0, 0, 0];
  for (let rounds = 0; ; rounds++) {
    expect(rounds).toBeLessThan(1_000);
    const { remove, seal, compact } = planCollection(after);
    if (remove.length + seal.length + compact.length === 0) return { after, copied, freed };
    after = after.filter(({ name }) => !remove.includes(name));
    after = after.map((use) => (seal.includes(use.name) ? { ...use, open: false } : use));
    const source = after.find(({ name }) => name === compact[0]);
    if (!source) continue;
    copied += source.live;
    freed += source.bytes - source.live;
    after = after.map((use) => (use === source ? { ...use, live: 0 } : use));
    const target = after.find(({ open, bytes }) => open && bytes + source.live <= EXTENT_BYTES);
    if (target) {
      const grown = { ...target, bytes: target.bytes + source.live, live: target.live + source.live };
      after = after.map((use) => (use === target ? grown : use));
    } else {
      // Only the newest extent is open.
      after = after.map((use) => ({ ...use, open: false }));
      after.push({ name: `2-${made++}`, bytes: source.live, live: source.live, open: true, pinned: false });
    }
  }
}

function sum(folder: readonly ExtentUse[], what: 'bytes' | 'live'): number {
  return folder.reduce((total, use) => total + use[what], 0);
}
