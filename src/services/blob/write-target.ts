/** What a write finds where it is about to write, and what becomes of it. */
import { parseId } from '../../content/rows.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import type { Lease } from '../../rules/lease.ts';
import type { Storage } from '../common/storage.ts';
import { decodeBlobRecord } from './blob-record.ts';
import { fail } from './errors.ts';
import {
  type Blob,
  blobKey,
  type ContainerId,
  decodeUncommitted,
  inlineKey,
  isExpired,
  readContainerId,
  scheduleUncommittedDeletion,
  type UncommittedBlocks,
  uncommittedKey,
} from './rows.ts';

export interface WriteTarget {
  readonly container: ContainerId;
  readonly name: string;
  readonly blob: Blob | undefined;
  /** Its uncommitted blocks. */
  readonly uncommitted: UncommittedBlocks | undefined;
  /** Blocks that are there only because the sweeper has not come to them. */
  readonly expired: UncommittedBlocks | undefined;
}

export async function readTarget(
  at: Snapshot,
  storage: Storage,
  container: string,
  name: string,
): Promise<WriteTarget> {
  const { account } = storage;
  const id = await readContainerId(at, storage, container);
  const [head, staged] = await at.getMany([blobKey(account, id, name), uncommittedKey(account, id, name)]);
  const stage = staged && decodeUncommitted(staged);
  const expired = stage !== undefined && isExpired(stage, at.now);
  return {
    container: id,
    name,
    blob: head && decodeBlobRecord(head),
    uncommitted: expired ? undefined : stage,
    expired: expired ? stage : undefined,
  };
}

/** Where an upload goes, before its bytes come. */
export function findContainerId(storage: Storage, container: string): Promise<ContainerId> {
  return storage.partition.read((at) => readContainerId(at, storage, container));
}

/** A container that was deleted and made again during an upload is another one, though it has the same name. */
export function checkSameContainer({ container }: WriteTarget, containerId: ContainerId): void {
  if (container !== containerId) throw fail('ContainerNotFound');
}

/** A blob that consists of uncommitted blocks can be leased, too. */
export function currentLease({ blob, uncommitted }: WriteTarget): Lease | undefined {
  return blob ? blob.lease : uncommitted?.lease;
}

/** Where references may come from. */
export interface ReferenceSources {
  readonly content: boolean;
  readonly stage: boolean;
}

interface ReleaseOptions {
  /** The new content goes where an inline one may have been. */
  readonly inline?: boolean;
  /** Whose references are all those of the new content from now on. */
  readonly handsOver?: ReferenceSources | undefined;
}

/** Lets go of content and uncommitted blocks for what comes instead. True: there is something to sweep. */
export async function releaseReplaced(
  tx: Transaction,
  storage: Storage,
  target: WriteTarget,
  { inline = false, handsOver }: ReleaseOptions = {},
): Promise<boolean> {
  const { account, content } = storage;
  const { container, name, blob, uncommitted, expired } = target;
  if (blob?.contentId !== undefined && handsOver?.content) content.transferRefs(tx, account, parseId(blob.contentId));
  else if (blob?.contentId !== undefined) await content.decrefContent(tx, account, parseId(blob.contentId));
  else if (blob && !inline) tx.remove(inlineKey(account, container, name));
  const staged = uncommitted ?? expired;
  if (staged)
    scheduleUncommittedDeletion(tx, account, container, name, staged, handsOver?.stage ? 'uncounted' : 'counted');
  return blob?.contentId !== undefined || staged !== undefined;
}
