/** Copies onto blobs. The blob is empty until its copy is complete; its record has the state of the copy. */
import type { ContentStore } from '../../content/content.ts';
import { formatId } from '../../content/rows.ts';
import { crc64Base64 } from '../../hashing/hasher.ts';
import { decodeKey, type Key } from '../../partition/keys.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { encodeBytes } from '../../partition/values.ts';
import { type CopyState, completeCopy } from '../../rules/copy-state.ts';
import type { CopyTarget, CopyTargets } from '../common/copy-target.ts';
import type { RunningCopy } from '../common/running-copies.ts';
import type { AccountId } from '../common/storage.ts';
import { WHOLE_BYTES_MAX } from '../common/upload.ts';
import { decodeBlobRecord, encodeBlobRecord } from './blob-record.ts';
import { assignChunks } from './copied-segments.ts';
import {
  type Blob,
  blobKey,
  type ContainerId,
  inlineKey,
  propertiesKey,
  recordFrom,
  runningCopiesIn,
  runningCopyKey,
} from './rows.ts';

/** Where a running copy is. */
export interface CopyPlace {
  readonly account: AccountId;
  readonly container: ContainerId;
  readonly blob: string;
}

export const keyOfCopy = ({ account, container, blob }: CopyPlace): Key => runningCopyKey(account, container, blob);

export function placeOfCopy(key: Key): CopyPlace {
  const [account, , container, , blob] = decodeKey(key) as [AccountId, string, ContainerId, bigint, string];
  return { account, container, blob };
}

/** The blob onto which a copy runs, as its record has it. */
export async function readCopied(at: Snapshot, { account, container, blob }: CopyPlace): Promise<Blob | undefined> {
  const row = await at.get(blobKey(account, container, blob));
  return row && decodeBlobRecord(row);
}

/** A change that is no write of the blob, and leaves its ETag alone. */
export function putProgress(tx: Transaction, { account, container, blob }: CopyPlace, found: Blob, copy: CopyState) {
  tx.put(blobKey(account, container, blob), encodeBlobRecord({ ...recordFrom(found), copy, etag: found.version }));
}

/** The copy ends without its bytes: the blob stays empty. True: the sweeper has work to do. */
export function endWithoutBytes(
  tx: Transaction,
  content: Pick<ContentStore, 'discardContent'>,
  place: CopyPlace,
  { content: contentId }: RunningCopy,
  found: Blob,
  copy: CopyState,
): boolean {
  const { account, container, blob } = place;
  tx.remove(keyOfCopy(place));
  tx.put(blobKey(account, container, blob), encodeBlobRecord({ ...recordFrom(found), copy }));
  const hasPages = (found.copy?.copied ?? 0) > 0;
  if (hasPages) content.discardContent(tx, account, contentId);
  return hasPages;
}

const EMPTY = Buffer.alloc(0);

/** The content of a blob before its copy is complete. */
export function putEmptyContent(
  tx: Transaction,
  { account, container, blob }: CopyPlace,
): { length: 0; crc64: string } {
  tx.put(inlineKey(account, container, blob), encodeBytes(EMPTY));
  return { length: 0, crc64: crc64Base64(EMPTY) };
}

export const blobCopies: CopyTargets = {
  rowsIn: (account) => runningCopiesIn(account),
  open: (content, key) => (decodeKey(key)[1] === 'r' ? blobTarget(content, placeOfCopy(key)) : undefined),
};

function blobTarget(content: ContentStore, place: CopyPlace): CopyTarget<Blob> {
  const { account, container, blob } = place;
  const inline = inlineKey(account, container, blob);
  return {
    account,
    key: keyOfCopy(place),
    wholeBytesMax: WHOLE_BYTES_MAX,
    async read(at) {
      // Of a deleted container the properties are gone at once, the blobs later.
      const properties = await at.get(propertiesKey(account, container));
      return properties && readCopied(at, place);
    },
    putState: (tx, found, copy) => putProgress(tx, place, found, copy),
    wantedUpload: () => ({ md5: false }),
    async addSlice(tx, copy, offset, slice, { chunkRefs }) {
      const { segments, repeated } = assignChunks(slice, chunkRefs);
      await content.increfChunks(tx, account, repeated);
      await content.addSegments(tx, account, copy.content, offset, segments);
    },
    complete(tx, { content: contentId, md5 }, found, whole) {
      tx.remove(keyOfCopy(place));
      if (whole) tx.put(inline, encodeBytes(whole));
      else {
        content.completeContent(tx, account, contentId, found.copy.bytes);
        tx.remove(inline);
      }
      const record = {
        ...recordFrom(found),
        ...(whole
          ? { crc64: crc64Base64(whole), contentId: undefined }
          : { crc64: undefined, contentId: formatId(contentId) }),
        length: found.copy.bytes,
        content: { ...found.content, contentMd5: md5 },
        copy: completeCopy(found.copy, tx.timestamp),
      };
      tx.put(blobKey(account, container, blob), encodeBlobRecord(record));
    },
    end: (tx, copy, found, state) => endWithoutBytes(tx, content, place, copy, found, state),
  };
}
