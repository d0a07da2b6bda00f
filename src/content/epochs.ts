/** The life of a process as a row: it is part of the name of every chunk that the process writes, and fences its commits. */
import { decodeKey, encodeKey } from '../partition/keys.ts';
import { type Partition, type Transaction, Unavailable } from '../partition/partition.ts';
import { encodeValue } from '../partition/values.ts';
import { epochKey, epochsIn } from './rows.ts';

/** More than one is left only by processes that were killed while they started. */
const EPOCHS_MAX = 100;

/** Declares all other processes dead: one process owns the store. */
export async function openEpoch(partition: Partition): Promise<bigint> {
  const { value } = await partition.transact(encodeKey(['epoch']), async (tx) => {
    const others = await tx.scan(epochsIn(), { limit: EPOCHS_MAX });
    // A stamp is not given twice: no earlier process had this one.
    const epoch = others.reduce((highest, { key }) => {
      const other = decodeKey(key)[1] as bigint;
      return other >= highest ? other + 1n : highest;
    }, tx.stamp);
    for (const { key } of others) tx.remove(key);
    tx.put(epochKey(epoch), encodeValue({}));
    return epoch;
  });
  return value;
}

/** Read in every commit that names new bytes: a process that was declared dead fails instead of naming bytes that are gone. */
export async function checkEpoch(tx: Transaction, epoch: bigint): Promise<void> {
  if (!(await tx.get(epochKey(epoch)))) throw new Unavailable('another process has taken over this store');
}
