/**
 * The bytes that the files of a share use: counters, which conflict with nothing. Their sum is what the quota limits. Writes in flight are not in the
 * sum that a transaction reads; those that could exceed the quota together take turns.
 */
import type { Key } from '../../partition/keys.ts';
import type { Row, Snapshot, Transaction } from '../../partition/partition.ts';
import { COUNTER_BYTES, decodeCounter } from '../../partition/values.ts';
import { bytesLeft } from '../../rules/file/shares.ts';
import type { AccountId } from '../common/storage.ts';
import { fail } from './errors.ts';
import { type Share, type ShareId, type ShareKeys, usageIn, usageKey } from './rows.ts';

/** In some engines adds to one row wait for each other: the shards reduce that. */
const SHARDS = 8;

/** More than are in flight at once, in all processes. */
const WRITES_IN_FLIGHT = 1_024n;
/** The row of turns is a counter that stays zero: it counts as nothing in every sum. */
const TURN = Buffer.alloc(COUNTER_BYTES);

/** Part of a write that changes the bytes in use by `bytes`. Throws if they would exceed the quota; what frees bytes is never refused. */
export async function charge(tx: Transaction, share: Share, bytes: number): Promise<void> {
  if (bytes === 0) return;
  if (bytes > 0) {
    const left = bytesLeft(share.quota, (await readUsed(tx, share)) + BigInt(bytes));
    if (left < 0n) throw fail('ShareSizeLimitReached');
    if (left < BigInt(bytes) * WRITES_IN_FLIGHT) await takeTurn(tx, share);
  }
  tx.add(shards(share)[Number(tx.timestamp % BigInt(SHARDS))]!, BigInt(bytes));
}

/** Of two such commits on one state, one is a conflict and reads the sum again. Those of one file that share a commit do not see each other. */
async function takeTurn(tx: Transaction, share: ShareKeys): Promise<void> {
  const key = usageKey(share, SHARDS);
  await tx.get(key);
  tx.put(key, TURN);
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
  return sumUsage(await at.scan(usageIn(share), { limit: SHARDS + 1 }));
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
