/** Removes the opens of processes that are gone. They count as absent before that: this gives their space back. */
import { forgetOrphaned, orphanedOwners } from '../../content/membership/owner-rows.ts';
import { encodeKey, type Key, keyAfter, type Range } from '../../partition/keys.ts';
import type { Partition, Row, Transaction } from '../../partition/partition.ts';
import type { AccountId } from '../common/storage.ts';
import {
  decodeHandle,
  decodeOpens,
  encodeOpens,
  handlesIn,
  opensInAccount,
  ownersOf,
  withoutOwners,
} from './open-rows.ts';

const SLICE_ROWS = 500;
const QUEUE_KEY = encodeKey(['orphaned']);

export async function removeOrphanedOpens(partition: Partition, accounts: Iterable<AccountId>): Promise<void> {
  const orphaned = new Set(await partition.read(orphanedOwners));
  if (orphaned.size === 0) return;
  for (const account of accounts) {
    await eachSlice(partition, handlesIn(account), (tx, rows) => {
      for (const row of rows) if (orphaned.has(decodeHandle(row).owner)) tx.remove(row.key);
    });
    await eachSlice(partition, opensInAccount(account), async (tx, rows) => {
      for (const { key } of rows.filter((row) => namesOne(row, orphaned))) await removeOwners(tx, key, orphaned);
    });
  }
  await partition.transact(QUEUE_KEY, async (tx) => {
    for (const epoch of orphaned) forgetOrphaned(tx, epoch);
  });
}

const namesOne = (row: Row, orphaned: ReadonlySet<bigint>): boolean =>
  [...ownersOf(decodeOpens(row))].some((owner) => orphaned.has(owner));

/** Others may open and close the file meanwhile: so the row is read again. */
async function removeOwners(tx: Transaction, key: Key, orphaned: ReadonlySet<bigint>): Promise<void> {
  const row = await tx.get(key);
  if (!row) return;
  const left = withoutOwners(decodeOpens(row), orphaned);
  if (left.groups.length === 0) tx.remove(key);
  else tx.put(key, encodeOpens(left));
}

async function eachSlice(
  partition: Partition,
  { from: start, to }: Range,
  work: (tx: Transaction, rows: readonly Row[]) => Promise<void> | void,
): Promise<void> {
  for (let from = start; ; ) {
    const rows = await partition.read((at) => at.scan({ from, to }, { limit: SLICE_ROWS }));
    if (rows.length > 0) await partition.transact(QUEUE_KEY, async (tx) => work(tx, rows));
    if (rows.length < SLICE_ROWS) return;
    from = keyAfter(rows.at(-1)!.key);
  }
}
