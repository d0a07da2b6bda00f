/**
 * Epochs as fencing tokens: every commit that names new bytes checks that its process is still a member. The epoch is part of the
 * name of every chunk that the process writes.
 */
import { encodeKey } from '../../partition/keys.ts';
import { type Partition, type Row, type Snapshot, type Transaction, Unavailable } from '../../partition/partition.ts';
import { encodeValue } from '../../partition/values.ts';
import { epochFromKey, epochKey, epochsIn, heartbeatKey, LAST_EPOCH_KEY } from '../rows.ts';
import { removeOwner } from './owner-rows.ts';

/** More than the processes that share a store and those that are killed while they start. */
const EPOCHS_MAX = 1_000;

/** Evicts all other processes: this one owns the store. */
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

/** Adds a process to those that share the store, with its first heartbeat. */
export async function addEpoch(partition: Partition, firstHeartbeat: (tx: Transaction) => Uint8Array): Promise<bigint> {
  const { value } = await partition.transact(LAST_EPOCH_KEY, async (tx) => {
    const epoch = tx.timestamp;
    // Two processes can get equal timestamps, but not in commits that write the same key.
    tx.put(LAST_EPOCH_KEY, encodeValue({}));
    tx.put(epochKey(epoch), encodeValue({}));
    tx.put(heartbeatKey(epoch), firstHeartbeat(tx));
    return epoch;
  });
  return value;
}

/** After this commit, no commit of the process can name new bytes or rest on its volatile rows. An epoch is never used again. */
export function removeEpoch(tx: Transaction, epoch: bigint): void {
  tx.remove(epochKey(epoch));
  tx.remove(heartbeatKey(epoch));
  removeOwner(tx, epoch);
}

/** Epochs of the processes that were members when the snapshot was taken. */
export async function activeEpochs(at: Snapshot): Promise<ReadonlySet<bigint>> {
  return new Set((await at.scan(epochsIn(), { limit: EPOCHS_MAX })).map(({ key }) => epochFromKey(key)));
}

/** Belongs into every commit that names new bytes: an evicted process fails instead of naming bytes that may be removed. */
export async function checkEpoch(tx: Transaction, epoch: bigint): Promise<void> {
  if (!(await tx.get(epochKey(epoch)))) throw new Unavailable('Another process has taken over from this one.');
}

/** Higher than all epochs that exist. No earlier process had this one, as a timestamp is not given twice. */
function epochAfter(others: readonly Row[], timestamp: bigint): bigint {
  return others.reduce(
    (highest, { key }) => (epochFromKey(key) >= highest ? epochFromKey(key) + 1n : highest),
    timestamp,
  );
}
