/**
 * The bytes that the files of a share use: counters, which conflict with nothing. Their sum is what the quota limits, exact to within
 * the writes in flight.
 */
import type { Key } from '../../partition/keys.ts';
import type { Row, Snapshot, Transaction } from '../../partition/partition.ts';
import { decodeCounter } from '../../partition/values.ts';
import { fitsQuota } from '../../rules/file/shares.ts';
import type { AccountId } from '../common/storage.ts';
import { fail } from './errors.ts';
import { type Share, type ShareId, type ShareKeys, usageIn, usageKey } from './rows.ts';

/** In some engines adds to one row wait for each other: the shards reduce that. */
const SHARDS = 8;

/** Part of a write that changes the bytes in use by `bytes`. Throws if they would exceed the quota; what frees bytes is never refused. */
export async function charge(tx: Transaction, share: Share, bytes: number): Promise<void> {
  if (bytes === 0) return;
  if (bytes > 0) {
    const before = await readUsed(tx, share);
    if (!fitsQuota(before + BigInt(bytes), share.quota)) throw fail('ShareSizeLimitReached');
  }
  tx.add(shards(share)[Number(tx.timestamp % BigInt(SHARDS))]!, BigInt(bytes));
}

/** Of the last share that was charged, by the state that was read: writes of many clients read one state side by side. */
const used = new WeakMap<
  object,
  { readonly account: AccountId; readonly id: ShareId; readonly sum: Promise<bigint> }
>();

/** Without what this commit adds: no transaction can read that. */
function readUsed(tx: Transaction, share: ShareKeys): Promise<bigint> {
  const { account, id } = share;
  const known = used.get(tx.state);
  if (known?.id === id && known.account === account) return known.sum;
  const sum = tx.getUnchecked(shards(share)).then(sumUsage);
  used.set(tx.state, { account, id, sum });
  return sum;
}

export async function readUsage(at: Snapshot, share: ShareKeys): Promise<bigint> {
  return sumUsage(await at.scan(usageIn(share), { limit: SHARDS }));
}

/** Writes that follow each other are mostly to one share. */
let lastShards: { readonly account: AccountId; readonly id: ShareId; readonly keys: readonly Key[] } | undefined;

function shards({ account, id }: ShareKeys): readonly Key[] {
  if (lastShards?.account !== account || lastShards.id !== id) {
    const keys = Array.from({ length: SHARDS }, (_, shard) => usageKey({ account, id }, shard));
    lastShards = { account, id, keys };
  }
  return lastShards.keys;
}

function sumUsage(rows: readonly (Row | undefined)[]): bigint {
  return rows.reduce((sum, row) => sum + decodeCounter(row), 0n);
}
