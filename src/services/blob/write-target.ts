/** What a write finds where it is about to write, and what becomes of it. */
import { idOf } from '../../content/rows.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import type { Lease } from '../../rules/lease.ts';
import type { Storage } from '../common/storage.ts';
import { decodeHead } from './blob-record.ts';
import { fail } from './errors.ts';
import {
  type Blob,
  type ContainerId,
  containerIdAt,
  decodeStage,
  headKey,
  inlineKey,
  isExpired,
  type Stage,
  stageKey,
  trashStage,
} from './rows.ts';

export interface Target {
  readonly container: ContainerId;
  readonly name: string;
  readonly blob: Blob | undefined;
  /** Its uncommitted blocks. */
  readonly stage: Stage | undefined;
  /** Blocks that are there only because the sweeper has not come to them. */
  readonly expired: Stage | undefined;
}

export async function targetAt(at: Snapshot, storage: Storage, container: string, name: string): Promise<Target> {
  const { account } = storage;
  const id = await containerIdAt(at, storage, container);
  const [head, staged] = await at.getMany([headKey(account, id, name), stageKey(account, id, name)]);
  const stage = staged && decodeStage(staged);
  const expired = stage !== undefined && isExpired(stage, at.now);
  return {
    container: id,
    name,
    blob: head && decodeHead(head),
    stage: expired ? undefined : stage,
    expired: expired ? stage : undefined,
  };
}

/** Where an upload goes, before its bytes come. */
export function homeOf(storage: Storage, container: string): Promise<ContainerId> {
  return storage.partition.read((at) => containerIdAt(at, storage, container));
}

/** A container that was deleted and made again during an upload is another one, though it has the same name. */
export function checkHome({ container }: Target, home: ContainerId): void {
  if (container !== home) throw fail('ContainerNotFound');
}

/** A blob that consists of uncommitted blocks can be leased, too. */
export function leaseOn({ blob, stage }: Target): Lease | undefined {
  return blob ? blob.lease : stage?.lease;
}

/** Where references may come from. */
export interface Sources {
  readonly content: boolean;
  readonly stage: boolean;
}

interface LettingGo {
  /** The new content goes where an inline one may have been. */
  readonly inline?: boolean;
  /** Whose references are all those of the new content from now on. */
  readonly handsOver?: Sources | undefined;
}

/** Lets go of content and uncommitted blocks for what comes instead. True: there is something to sweep. */
export async function letGo(
  tx: Transaction,
  storage: Storage,
  target: Target,
  { inline = false, handsOver }: LettingGo = {},
): Promise<boolean> {
  const { account, content } = storage;
  const { container, name, blob, stage, expired } = target;
  if (blob?.contentId !== undefined && handsOver?.content) content.handOver(tx, account, idOf(blob.contentId));
  else if (blob?.contentId !== undefined) await content.releaseContent(tx, account, idOf(blob.contentId));
  else if (blob && !inline) tx.remove(inlineKey(account, container, name));
  const staged = stage ?? expired;
  if (staged) trashStage(tx, account, container, name, staged, handsOver?.stage ? 'uncounted' : 'counted');
  return blob?.contentId !== undefined || staged !== undefined;
}
