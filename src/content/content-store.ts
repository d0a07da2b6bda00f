import type { Extents } from '../extents/extents.ts';
import type { Hashers } from '../hashing/hash-pool.ts';
import { type Partition, Unavailable } from '../partition/partition.ts';
import type { ContentStore } from './content.ts';
import { type Reading, RunningRead } from './download.ts';
import type { Reads } from './gc/active-reads.ts';
import * as lists from './manifest.ts';
import { checkEpoch } from './membership/epochs.ts';
import { addChunks, changeReferences } from './refcounts.ts';
import { epochKey, type Id } from './rows.ts';
import { createTaker } from './upload.ts';

export interface ContentStoreOptions {
  readonly partition: Pick<Partition, 'read'>;
  readonly extents: Extents;
  /** Of this process. */
  readonly epoch: bigint;
  readonly reads: Reads;
  readonly hashers: Hashers;
}

export interface OpenContentStore extends ContentStore {
  /** Where bytes lie that somebody has taken, or is taking, and has not released yet: no row may name them, but one will. */
  heldExtents(): ReadonlySet<string>;
}

export function createContentStore({
  partition,
  extents,
  epoch,
  reads,
  hashers,
}: ContentStoreOptions): OpenContentStore {
  let last = 0n;
  const newId = (): Id => ({ epoch, number: ++last });
  const { take, heldExtents } = createTaker(extents, hashers, newId);
  const isGone = (): Promise<boolean> =>
    partition
      .read((at) => at.get(epochKey(epoch)))
      .then(
        (row) => row === undefined,
        () => false,
      );
  const reading: Reading = { partition, extents, reads, held: { bytes: 0 } };
  return {
    async take(...given) {
      try {
        return await take(...given);
      } catch (error) {
        // The others have removed the extents of a process that they took for dead: it would have failed at its commit anyway.
        throw (await isGone()) ? new Unavailable('Another process has taken over from this one.') : error;
      }
    },
    heldExtents,
    newId,
    async nameChunks(tx, account, taken) {
      await checkEpoch(tx, epoch);
      addChunks(tx, account, taken);
    },
    addContent: lists.addContent,
    // A pending content of a dead process is swept: nothing may be added to it behind the sweeper's back.
    async beginPending(tx, account, id, counting) {
      await checkEpoch(tx, epoch);
      return lists.beginPending(tx, account, id, counting);
    },
    async addCells(tx, account, id, offset, pieces) {
      await checkEpoch(tx, epoch);
      lists.addCells(tx, account, id, offset, pieces);
    },
    async finishPending(tx, account, id, trash, length) {
      await checkEpoch(tx, epoch);
      await lists.finishPending(tx, account, id, trash, length);
    },
    abandonPending: (tx, _account, id, trash, counting) => lists.abandonPending(tx, id, trash, counting),
    shareContent: lists.shareContent,
    releaseContent: lists.releaseContent,
    isUnshared: lists.isUnshared,
    handOver: lists.handOver,
    raiseParts: (tx, account, parts) => changeReferences(tx, account, parts, 1),
    releaseParts: (tx, account, parts) => changeReferences(tx, account, parts, -1),
    sweepContent: lists.sweepContent,
    piecesFrom: lists.piecesFrom,
    beginRead: () => new RunningRead(reading),
  };
}
