/** Copies onto files. The file is empty until its copy is complete; its node has the state of the copy. */
import type { ContentStore, UploadedContent } from '../../content/content.ts';
import { NEW_MAP } from '../../content/ranges/range-maps.ts';
import { formatId } from '../../content/rows.ts';
import { decodeKey, type Key } from '../../partition/keys.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { advanceCopy, type CopyState, completeCopy, copiedBytes } from '../../rules/copy-state.ts';
import type { CopyRun, CopyTarget, CopyTargets } from '../common/copy-target.ts';
import type { RunningCopy } from '../common/running-copies.ts';
import { openSlices, type SourceSlice } from '../common/slice-sources.ts';
import type { AccountId } from '../common/storage.ts';
import { withUpload } from '../common/upload.ts';
import { contentPlace } from './generations.ts';
import { updateNode } from './namespace.ts';
import { decodeNode, type File } from './node-rows.ts';
import { decodeShare, type NodeId, nameKey, nodeKey, runningCopiesIn, type Share, type ShareId } from './rows.ts';
import { charge } from './usage.ts';

export interface FileCopyPlace {
  readonly account: AccountId;
  readonly share: ShareId;
  readonly node: NodeId;
  readonly shareName: string;
}

export interface CopiedFile {
  readonly share: Share;
  readonly file: File;
  readonly copy?: CopyState | undefined;
}

export function placeOfFileCopy(key: Key): FileCopyPlace {
  const [account, , share, node, shareName] = decodeKey(key) as [AccountId, string, ShareId, NodeId, string];
  return { account, share, node, shareName };
}

/** Undefined: the share is deleted, or the file is. */
export async function readCopiedFile(at: Snapshot, place: FileCopyPlace): Promise<CopiedFile | undefined> {
  const { account, share: id, node, shareName } = place;
  const [name, row] = await at.getMany([nameKey(account, shareName), nodeKey({ account, id }, node)]);
  const share = name && decodeShare(account, name);
  const file = row && decodeNode(node, row);
  if (share?.id !== id || file?.kind !== 'file') return undefined;
  return { share, file, copy: file.copy };
}

/** The copy ends without its bytes, which do not count against the quota any more. True: the sweeper has work to do. */
export async function endFileCopy(
  tx: Transaction,
  content: Pick<ContentStore, 'discardContent'>,
  key: Key,
  { content: contentId }: RunningCopy,
  { share, file }: CopiedFile,
  state: CopyState,
): Promise<boolean> {
  tx.remove(key);
  await charge(tx, share, -state.bytes);
  await updateNode(tx, share, file, { copy: state });
  const hasPages = (file.copy?.copied ?? 0) > 0;
  if (hasPages) content.discardContent(tx, share.account, contentId, 'ranges');
  return hasPages;
}

export const fileCopies: CopyTargets = {
  rowsIn: (account) => runningCopiesIn(account),
  open: (content, key) => (decodeKey(key)[1] === 'R' ? fileTarget(content, key) : undefined),
};

function fileTarget(content: ContentStore, key: Key): CopyTarget<CopiedFile> {
  const place = placeOfFileCopy(key);
  return {
    key,
    read: (at) => readCopiedFile(at, place),
    async putState(tx, { share, file }, copy) {
      await updateNode(tx, share, file, { copy }, 'keep');
    },
    copy: (run, copy, state) => copySlices(run, key, copy, state),
    end: (tx, copy, found, state) => endFileCopy(tx, content, key, copy, found, state),
  };
}

/** The pages of a content that no row names yet but that of the copy; the last slice makes it the content of the file. */
async function copySlices(
  run: CopyRun<CopiedFile>,
  key: Key,
  copy: RunningCopy,
  { bytes, copied = 0 }: CopyState,
): Promise<void> {
  const source = openSlices(run.context, copy.source, bytes, run.signal);
  try {
    if (bytes === 0) await commitSlice(run, key, copy, 0, undefined);
    for (let offset = copied; offset < bytes; )
      offset = await copySlice(run, key, copy, offset, await source.next(offset));
  } finally {
    source.close();
  }
}

/** Returns the offset after the slice. */
async function copySlice(
  run: CopyRun<CopiedFile>,
  key: Key,
  copy: RunningCopy,
  offset: number,
  slice: SourceSlice,
): Promise<number> {
  const { account } = placeOfFileCopy(key);
  const length = slice.segments.reduce((sum, segment) => sum + segment.length, 0);
  const sent = { length, expected: {}, bytes: () => run.checked(slice.bytes()) };
  await withUpload({ content: run.context.content, account }, sent, { md5: false, mapOffset: offset }, (uploaded) =>
    commitSlice(run, key, copy, offset, uploaded),
  );
  run.advanced();
  return offset + length;
}

/** @param uploaded undefined: there are no bytes at all */
async function commitSlice(
  run: CopyRun<CopiedFile>,
  key: Key,
  copy: RunningCopy,
  offset: number,
  uploaded: UploadedContent | undefined,
): Promise<void> {
  const { content, partition } = run.context;
  const { account } = placeOfFileCopy(key);
  const end = offset + (uploaded?.length ?? 0);
  await partition.transact(key, async (tx) => {
    const { share, file, copy: state } = await run.readOwn(tx, copy);
    if (copiedBytes(state) !== offset) throw new Error('the progress of a copy has changed');
    if (uploaded) {
      await content.commitUpload(tx, account, uploaded);
      const { chunkRefs } = uploaded;
      await content.ranges.write(tx, account, { id: copy.content, ...NEW_MAP }, offset, { chunkRefs });
    }
    if (end < state.bytes) {
      await updateNode(tx, share, file, { copy: advanceCopy(state, end) }, 'keep');
      return;
    }
    tx.remove(key);
    if (uploaded) content.ranges.create(tx, account, copy.content, contentPlace(share));
    await updateNode(tx, share, file, {
      ...(uploaded && { contentId: formatId(copy.content) }),
      length: state.bytes,
      content: { ...file.content, contentMd5: copy.md5 },
      copy: completeCopy(state, tx.timestamp),
    });
  });
}
