/** Counters for the engines: a row of eight bytes, signed, big-endian. One that comes to zero has no row. */
import { bufferOf, COUNTER_BYTES, counterOf, type Stamp } from './partition.ts';

/** What a counter's row holds once `n` is added; undefined: nothing is left of it. */
export function plus(value: Uint8Array | undefined, n: bigint): Buffer | undefined {
  // A sum too large wraps: it must not fail in the middle of a commit.
  const sum = BigInt.asIntN(64, (value ? counterOf({ value: bufferOf(value) }) : 0n) + n);
  if (sum === 0n) return undefined;
  const counter = Buffer.allocUnsafe(COUNTER_BYTES);
  counter.writeBigInt64BE(sum);
  return counter;
}

/** An add does not conflict with a later one that was faster; still every change of a row has a version of its own. */
export function versionOfAdd(stamp: Stamp, replaced: Stamp | undefined): Stamp {
  return replaced === undefined || replaced < stamp ? stamp : replaced + 1n;
}
