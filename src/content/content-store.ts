/** The content store: uploads, manifests, reference counts and downloads, bound to the epoch of this process. */
import type { Extents } from '../extents/extents.ts';
import type { HashPool } from '../hashing/hash-pool.ts';
import { type Partition, Unavailable } from '../partition/partition.ts';
import type { ContentStore } from './content.ts';
import { ContentDownload, type DownloadContext } from './download.ts';
import type { ActiveReads } from './gc/active-reads.ts';
import * as manifest from './manifest.ts';
import { checkEpoch } from './membership/epochs.ts';
import { createRangeMaps } from './ranges/range-maps.ts';
import { addChunks, changeRefcounts } from './refcounts.ts';
import { epochKey, type Id } from './rows.ts';
import { createUploader } from './upload.ts';

export interface ContentStoreOptions {
  readonly partition: Pick<Partition, 'read' | 'transact'>;
  readonly extents: Extents;
  /** Of this process. */
  readonly epoch: bigint;
  readonly reads: ActiveReads;
  readonly hashers: HashPool;
  /** Map pages that a read looks up at a time; undefined: the default. */
  readonly mapPagesMax?: number | undefined;
}

export interface OpenContentStore extends ContentStore {
  /** Extents with bytes of uploads that run or are not released yet: a commit may still name these bytes. */
  pinnedExtents(): ReadonlySet<string>;
}

export function createContentStore({
  partition,
  extents,
  epoch,
  reads,
  hashers,
  mapPagesMax,
}: ContentStoreOptions): OpenContentStore {
  let lastNumber = 0n;
  const newId = (): Id => ({ epoch, number: ++lastNumber });
  const { upload, pinnedExtents } = createUploader(extents, hashers, newId);
  const isEvicted = (): Promise<boolean> =>
    partition
      .read((at) => at.get(epochKey(epoch)))
      .then(
        (row) => row === undefined,
        () => false,
      );
  const downloads: DownloadContext = { partition, extents, reads, mapPagesMax, buffered: { bytes: 0 } };
  const uploadAsMember: ContentStore['upload'] = async (...given) => {
    try {
      return await upload(...given);
    } catch (error) {
      // The extents of an evicted process are removed. Its commit would have failed anyway.
      throw (await isEvicted()) ? new Unavailable('Another process has taken over from this one.') : error;
    }
  };
  const commitUpload: ContentStore['commitUpload'] = async (tx, account, uploaded) => {
    await checkEpoch(tx, epoch);
    addChunks(tx, account, uploaded);
  };
  const beginRead = () => new ContentDownload(downloads);
  const ranges = createRangeMaps({
    ...{ partition, extents, commitUpload, beginRead },
    upload: (account, bytes, length) => uploadAsMember(account, bytes, length, { md5: false }),
    checkEpoch: (tx) => checkEpoch(tx, epoch),
  });
  return {
    upload: uploadAsMember,
    pinnedExtents,
    newId,
    commitUpload,
    ranges,
    addContent: manifest.addContent,
    // The pending contents of an evicted process are swept, so it must not add to them any more.
    async beginPending(tx, account, id, counting) {
      await checkEpoch(tx, epoch);
      return manifest.beginPending(tx, account, id, counting);
    },
    async addSegments(tx, account, id, offset, segments) {
      await checkEpoch(tx, epoch);
      manifest.addSegments(tx, account, id, offset, segments);
    },
    async finishPending(tx, account, id, pendingKey, length) {
      await checkEpoch(tx, epoch);
      await manifest.finishPending(tx, account, id, pendingKey, length);
    },
    abandonPending: manifest.abandonPending,
    completeContent: manifest.completeContent,
    discardContent: manifest.discardContent,
    increfContent: manifest.increfContent,
    decrefContent: manifest.decrefContent,
    isUnshared: manifest.isUnshared,
    transferRefs: manifest.transferRefs,
    increfChunks: (tx, account, chunkRefs) => changeRefcounts(tx, account, chunkRefs, 1),
    decrefChunks: (tx, account, chunkRefs) => changeRefcounts(tx, account, chunkRefs, -1),
    sweepContent: manifest.sweepContent,
    segmentsFrom: manifest.segmentsFrom,
    chunkRefsIn: manifest.chunkRefsIn,
    async hash(bytes, length, wants) {
      const job = hashers.begin({ ...wants, length });
      try {
        for await (const piece of bytes) await job.update([piece]);
        return await job.digest();
      } catch (error) {
        job.abandon();
        throw error;
      }
    },
    beginRead,
  };
}
