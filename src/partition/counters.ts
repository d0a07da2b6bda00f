/** Counters for the engines: a row of eight bytes, signed, big-endian. One that comes to zero has no row. */
import type { Key } from './keys.ts';
import { asBuffer, COUNTER_BYTES, type Commit, decodeCounter, type Timestamp, type Write } from './partition.ts';

/** What a counter's row holds once `n` is added; undefined: nothing is left of it. */
export function addToCounter(value: Uint8Array | undefined, n: bigint): Buffer | undefined {
  // A sum too large wraps: it must not fail in the middle of a commit.
  const sum = BigInt.asIntN(64, (value ? decodeCounter({ value: asBuffer(value) }) : 0n) + n);
  if (sum === 0n) return undefined;
  const counter = Buffer.allocUnsafe(COUNTER_BYTES);
  counter.writeBigInt64BE(sum);
  return counter;
}

/** An add does not conflict with a later one that was faster; still every change of a row has a version of its own. */
export function versionAfterAdd(timestamp: Timestamp, replaced: Timestamp | undefined): Timestamp {
  return replaced === undefined || replaced < timestamp ? timestamp : replaced + 1n;
}

/** What several bodies add to a row is added once, with the last of them: nobody rests on what it comes to in between. */
export function mergeAdds(bodies: Commit['writeSets']): Commit['writeSets'] {
  if (bodies.length < 2) return bodies;
  const adds = new Map<Key, { readonly kind: 'add'; readonly key: Key; n: bigint }>();
  const fewer = bodies.toReversed().map(({ timestamp, writes }) => {
    const left: Write[] = [];
    for (const write of writes) {
      const { key, kind } = write;
      const later = adds.get(key);
      if (kind !== 'add') {
        adds.delete(key);
        left.push(write);
      } else if (later) later.n = BigInt.asIntN(64, later.n + write.n);
      else {
        const add = { kind, key, n: write.n };
        adds.set(key, add);
        left.push(add);
      }
    }
    return { timestamp, writes: left };
  });
  return fewer.reverse();
}
