/** Copies onto files. The file is empty until its copy is complete; its node has the state of the copy. */
import type { ContentStore } from '../../content/content.ts';
import { NEW_MAP } from '../../content/ranges/range-maps.ts';
import { formatId } from '../../content/rows.ts';
import { decodeKey, type Key } from '../../partition/keys.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { type CopyState, completeCopy } from '../../rules/copy-state.ts';
import type { CopyTarget, CopyTargets } from '../common/copy-target.ts';
import type { RunningCopy } from '../common/running-copies.ts';
import type { AccountId } from '../common/storage.ts';
import { updateNode } from './namespace.ts';
import { decodeNode, type File } from './node-rows.ts';
import {
  decodeShare,
  type NodeId,
  nameKey,
  nodeKey,
  runningCopiesIn,
  runningCopyKey,
  type Share,
  type ShareId,
} from './rows.ts';
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
  updateNode(tx, share, file, { copy: state });
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
  const { account } = place;
  return {
    account,
    key,
    wholeBytesMax: 0,
    read: (at) => readCopiedFile(at, place),
    putState(tx, { share, file }, copy) {
      updateNode(tx, share, file, { copy }, 'keep');
    },
    wantedUpload: (mapOffset) => ({ md5: false, mapOffset }),
    async addSlice(tx, copy, offset, _segments, { chunkRefs }) {
      await content.ranges.write(tx, account, { id: copy.content, ...NEW_MAP }, offset, { chunkRefs });
    },
    complete(tx, { content: contentId, md5 }, { share, file, copy }, whole) {
      tx.remove(key);
      if (!whole) content.ranges.create(tx, account, contentId);
      updateNode(tx, share, file, {
        ...(!whole && { contentId: formatId(contentId) }),
        length: copy.bytes,
        content: { ...file.content, contentMd5: md5 },
        copy: completeCopy(copy, tx.timestamp),
      });
    },
    end: (tx, copy, found, state) => endFileCopy(tx, content, key, copy, found, state),
  };
}

export { runningCopyKey };
