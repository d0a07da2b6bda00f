/** The life of a process as a row: it is part of the name of every chunk that the process writes, and fences its commits. */
import { encodeKey } from '../../partition/keys.ts';
import { type Partition, type Row, type Snapshot, type Transaction, Unavailable } from '../../partition/partition.ts';
import { encodeValue } from '../../partition/values.ts';
import { epochFromKey, epochKey, epochsIn, heartbeatKey, LAST_EPOCH_KEY } from '../rows.ts';

/** More processes than will ever share a store, and than are killed while they start. */
const EPOCHS_MAX = 1_000;

/** Declares all other processes dead: one process owns the store. */
export async function takeOverEpoch(partition: Partition): Promise<bigint> {
  const { value } = await partition.transact(encodeKey(['epoch']), async (tx) => {
    const others = await tx.scan(epochsIn(), { limit: EPOCHS_MAX });
    const epoch = epochAfter(others, tx.timestamp);
    for (const { key } of others) tx.remove(key);
    tx.put(epochKey(epoch), encodeValue({}));
    return epoch;
  });
  return value;
}

/** One more process shares the store; its first beat comes with it. */
export async function addEpoch(partition: Partition, firstHeartbeat: (tx: Transaction) => Uint8Array): Promise<bigint> {
  const { value } = await partition.transact(LAST_EPOCH_KEY, async (tx) => {
    const epoch = tx.timestamp;
    // Two processes may have equal stamps, but not for one key.
    tx.put(LAST_EPOCH_KEY, encodeValue({}));
    tx.put(epochKey(epoch), encodeValue({}));
    tx.put(heartbeatKey(epoch), firstHeartbeat(tx));
    return epoch;
  });
  return value;
}

/** From here on no commit names bytes of this process that no row names yet. An epoch never comes back. */
export function removeEpoch(tx: Transaction, epoch: bigint): void {
  tx.remove(epochKey(epoch));
  tx.remove(heartbeatKey(epoch));
}

/** Of the processes that were not declared dead when the snapshot was taken. */
export async function activeEpochs(at: Snapshot): Promise<ReadonlySet<bigint>> {
  return new Set((await at.scan(epochsIn(), { limit: EPOCHS_MAX })).map(({ key }) => epochFromKey(key)));
}

/** Read in every commit that names new bytes: a process that was declared dead fails instead of naming bytes that are gone. */
export async function checkEpoch(tx: Transaction, epoch: bigint): Promise<void> {
  if (!(await tx.get(epochKey(epoch)))) throw new Unavailable('Another process has taken over from this one.');
}

/** A stamp is not given twice: no earlier process had this one. */
function epochAfter(others: readonly Row[], timestamp: bigint): bigint {
  return others.reduce(
    (highest, { key }) => (epochFromKey(key) >= highest ? epochFromKey(key) + 1n : highest),
    timestamp,
  );
}
