/** Commutative counters: a row of eight bytes, signed, big-endian. Adds conflict with nothing; a counter at zero has no row. */
import type { Key } from './keys.ts';
import { asBuffer, COUNTER_BYTES, type Commit, decodeCounter, type Timestamp, type Write } from './partition.ts';

/** The counter's value after the add; undefined: zero, so no row. */
export function addToCounter(value: Uint8Array | undefined, n: bigint): Buffer | undefined {
  // Overflow wraps: an error in the middle of a commit would be worse.
  const sum = BigInt.asIntN(64, (value ? decodeCounter({ value: asBuffer(value) }) : 0n) + n);
  if (sum === 0n) return undefined;
  const counter = Buffer.allocUnsafe(COUNTER_BYTES);
  counter.writeBigInt64BE(sum);
  return counter;
}

/** An add may commit after one with a later timestamp; still every change of a row needs a new version. */
export function versionAfterAdd(timestamp: Timestamp, replaced: Timestamp | undefined): Timestamp {
  return replaced === undefined || replaced < timestamp ? timestamp : replaced + 1n;
}

/** Adds of several transactions to one row become one add in the last of them: no transaction depends on the sums in between. */
export function mergeAdds(writeSets: Commit['writeSets']): Commit['writeSets'] {
  if (writeSets.length < 2) return writeSets;
  const adds = new Map<Key, { readonly kind: 'add'; readonly key: Key; n: bigint }>();
  const merged = writeSets.toReversed().map(({ timestamp, writes }) => {
    const kept: Write[] = [];
    for (const write of writes) {
      const { key, kind } = write;
      const later = adds.get(key);
      if (kind !== 'add') {
        adds.delete(key);
        kept.push(write);
      } else if (later) later.n = BigInt.asIntN(64, later.n + write.n);
      else {
        const add = { kind, key, n: write.n };
        adds.set(key, add);
        kept.push(add);
      }
    }
    return { timestamp, writes: kept };
  });
  return merged.reverse();
}
