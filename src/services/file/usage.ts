/**
 * The bytes that the files of a share use: counters, which conflict with nothing. Their sum is what the quota limits, exact to within
 * the writes in flight.
 */
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { decodeCounter } from '../../partition/values.ts';
import { fitsQuota } from '../../rules/file/shares.ts';
import { fail } from './errors.ts';
import { type Share, type ShareKeys, usageIn, usageKey } from './rows.ts';

/** In some engines adds to one row wait for each other: the shards reduce that. */
const SHARDS = 8;

/** Part of a write that changes the bytes in use by `bytes`. Throws if they would exceed the quota; what frees bytes is never refused. */
export async function charge(tx: Transaction, share: Share, bytes: number): Promise<void> {
  if (bytes === 0) return;
  if (bytes > 0) {
    const used = sumUsage(await tx.scanUnchecked(usageIn(share), { limit: SHARDS }));
    if (!fitsQuota(used + BigInt(bytes), share.quota)) throw fail('ShareSizeLimitReached');
  }
  tx.add(usageKey(share, Number(tx.timestamp % BigInt(SHARDS))), BigInt(bytes));
}

export async function readUsage(at: Snapshot, share: ShareKeys): Promise<bigint> {
  return sumUsage(await at.scan(usageIn(share), { limit: SHARDS }));
}

function sumUsage(rows: readonly { readonly value: Buffer }[]): bigint {
  return rows.reduce((sum, row) => sum + decodeCounter(row), 0n);
}
