/**
 * Owners of volatile rows. A process claims itself by a volatile row of its own, and what it holds has its epoch. The store can lose all
 * volatile rows while their owners live on (PostgreSQL after a crash or a failover): so every commit that rests on volatile rows checks the
 * owner row of its process, which is gone with them, and the process drops all that it held. Rows whose owner has no row count as absent.
 */
import { decodeKey, type Key, type Range, volatileKey, volatileKeysUnder } from '../../partition/keys.ts';
import { type Snapshot, type Timestamp, type Transaction, Unavailable } from '../../partition/partition.ts';
import { encodeValue } from '../../partition/values.ts';

/** The volatile rows of this process are gone: what rests on them has to be dropped. */
export class OwnerLost extends Unavailable {
  constructor() {
    super('The store has lost what this process held open.');
  }
}

/** Names one stretch of time in which no volatile row of the process was lost. */
export interface OwnerClaim {
  readonly epoch: bigint;
  /** Of the owner row: a process that claims itself again does not revive what rests on its claim before. */
  readonly version: Timestamp;
}

const OWNERS_MAX = 1_000;

export const ownerKey = (epoch: bigint): Key => volatileKey(['owner', epoch]);
const ownersIn = (): Range => volatileKeysUnder(['owner']);
/** Written when an owner is removed, as long as rows of it may be left. */
const orphanedKey = (epoch: bigint): Key => volatileKey(['orphaned', epoch]);
const orphanedIn = (): Range => volatileKeysUnder(['orphaned']);
const epochIn = (key: Key): bigint => decodeKey(key)[1] as bigint;

export function putOwner(tx: Transaction, epoch: bigint): void {
  tx.put(ownerKey(epoch), encodeValue({}));
}

/** Belongs into every commit that rests on volatile rows of this process. Throws OwnerLost. */
export async function checkOwner(tx: Transaction, { epoch, version }: OwnerClaim): Promise<void> {
  if ((await tx.get(ownerKey(epoch)))?.version !== version) throw new OwnerLost();
}

/** Whether volatile rows of this process count. In a transaction the commit validates the answer. */
export async function ownerExists(at: Snapshot, epoch: bigint): Promise<boolean> {
  return (await at.get(ownerKey(epoch))) !== undefined;
}

/** Processes whose volatile rows count. */
export async function activeOwners(at: Snapshot): Promise<ReadonlySet<bigint>> {
  return new Set((await at.scan(ownersIn(), { limit: OWNERS_MAX })).map(({ key }) => epochIn(key)));
}

/** In the commit that removes the epoch: from then on nothing that the process held counts, and no commit of it that rests on that succeeds. */
export function removeOwner(tx: Transaction, epoch: bigint): void {
  tx.remove(ownerKey(epoch));
  tx.put(orphanedKey(epoch), encodeValue({}));
}

/** Processes that are gone and may have left volatile rows, for the leader to remove. */
export async function orphanedOwners(at: Snapshot): Promise<readonly bigint[]> {
  return (await at.scan(orphanedIn(), { limit: OWNERS_MAX })).map(({ key }) => epochIn(key));
}

/** No volatile row of this process is left. */
export function forgetOrphaned(tx: Transaction, epoch: bigint): void {
  tx.remove(orphanedKey(epoch));
}
