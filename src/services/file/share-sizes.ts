/** The size of a share as a file system has one: its quota, and what is free of it. */
import type { Storage } from '../common/storage.ts';
import { readShare, type ShareId } from './rows.ts';
import { readUsage } from './usage.ts';

const GIB = 1n << 30n;

export interface ShareSizes {
  readonly id: ShareId;
  readonly totalBytes: bigint;
  readonly freeBytes: bigint;
}

export function readShareSizes(storage: Storage, shareName: string): Promise<ShareSizes> {
  return storage.partition.read(async (at) => {
    const share = await readShare(at, storage, shareName);
    const totalBytes = BigInt(share.quota) * GIB;
    const used = await readUsage(at, share);
    return { id: share.id, totalBytes, freeBytes: used < totalBytes ? totalBytes - used : 0n };
  });
}
