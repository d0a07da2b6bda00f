/** The bytes of a file through a handle: reads, writes that may make the file longer, its end, and what of it is allocated. */
import type { ByteRange } from '../../content/ranges/range-maps.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { RIGHTS } from '../../rules/file/access-mask.ts';
import { SPARSE } from '../../rules/file/attributes.ts';
import { isFileLength, SECTOR_BYTES, sectorsAround } from '../../rules/file/ranges.ts';
import { openBytes } from '../common/content-reads.ts';
import { withStagedBytes } from '../common/staged-bytes.ts';
import type { Storage } from '../common/storage.ts';
import type { SentContent } from '../common/upload.ts';
import { type ByteChange, type ByteChangeTimes, changeFileBytes } from './change-bytes.ts';
import { fail } from './errors.ts';
import { changeLength, clearBytes, planSeenContent, readSeenContent, writeBytes } from './file-content.ts';
import { handleQueueKey } from './handles.ts';
import type { File } from './node-rows.ts';
import type { Handle } from './open-rows.ts';
import { checkNoPendingCopy } from './request-checks.ts';
import { type OpenedNode, requireOpened } from './snapshot-handles.ts';
import { charge } from './usage.ts';
import type { LastWriteChange } from './write-times.ts';

export type OpenedFile = OpenedNode & { readonly node: File };

export const READS = RIGHTS.readData | RIGHTS.execute;
export const WRITES = RIGHTS.writeData | RIGHTS.appendData;

/** @param rights of which the handle has one, at least */
export async function requireFile(at: Snapshot, storage: Storage, handle: Handle, rights: number): Promise<OpenedFile> {
  const held = await requireOpened(at, storage, handle);
  if (!(held.open.rights & rights)) throw fail('AccessDenied');
  if (held.node.kind !== 'file') throw fail('ResourceTypeMismatch');
  return held as OpenedFile;
}

/** The bytes of one state of the file; fewer than asked for if it ends before. */
export async function readRange(storage: Storage, handle: Handle, { from, to: end }: ByteRange): Promise<Buffer> {
  const queueKey = () => handleQueueKey(storage.account, handle);
  const { found, bytes } = await openBytes(storage, queueKey, undefined, async (at, plan) => {
    const opened = await requireFile(at, storage, handle, READS);
    const to = Math.min(end, opened.node.length);
    if (from >= to) return { from, to: from, isPlanned: true, inline: Buffer.alloc(0) };
    const isPlanned = await planSeenContent(at, plan, await readSeenContent(at, storage, opened), { from, to });
    return { from, to, isPlanned };
  });
  return Buffer.isBuffer(bytes) ? bytes : collect(bytes, found.to - found.from);
}

async function collect(pieces: AsyncIterable<Buffer> | Iterable<Buffer>, length: number): Promise<Buffer> {
  const whole = Buffer.allocUnsafe(length);
  let end = 0;
  for await (const piece of pieces) {
    whole.set(piece, end);
    end += piece.length;
  }
  return whole;
}

/**
 * The bytes are durable when this returns. Writes of one file that wait at the same time share a commit.
 * @param bytes stay as they are until then
 * @returns undefined: there are no bytes
 */
export async function writeRange(
  storage: Storage,
  handle: Handle,
  { from, bytes, ...times }: ByteChangeTimes & { readonly from: number; readonly bytes: Buffer },
): Promise<LastWriteChange | undefined> {
  const to = from + bytes.length;
  if (bytes.length === 0) {
    await storage.partition.read((at) => requireFile(at, storage, handle, WRITES));
    return undefined;
  }
  const { written } = await withStagedBytes(
    storage,
    { body: bufferedContent(bytes), wantsMd5: false },
    async () => from,
    (staged) =>
      changeHeldBytes(storage, handle, times, WRITES, async (tx, found, newId) => {
        const { share, node } = found;
        checkAppends(found, from);
        const length = await growTo(tx, found, to);
        const { record, needsSweep } = await writeBytes(tx, storage, share, node, { from, bytes: staged, newId });
        return { record: { ...record, length }, needsSweep };
      }),
  );
  return written.lastWrite;
}

/** With the right to append alone, what is there cannot be overwritten. */
export function checkAppends({ open, node }: OpenedFile, from: number): void {
  if (!(open.rights & RIGHTS.writeData) && from < node.length) throw fail('AccessDenied');
}

export async function growTo(tx: Transaction, { share, node }: Pick<OpenedFile, 'share' | 'node'>, end: number) {
  const length = Math.max(node.length, end);
  checkLength(length);
  await charge(tx, share, length - node.length);
  return length;
}

/** A file cannot be longer than this, whatever the quota of its share. */
function checkLength(length: number): void {
  if (!isFileLength(length)) throw fail('ShareSizeLimitReached');
}

function bufferedContent(bytes: Buffer): SentContent {
  return {
    length: bytes.length,
    expected: {},
    whole: bytes,
    async *bytes() {
      yield bytes;
    },
  };
}

/** @param end of the file, whose bytes after it are lost, or which grows by zeros */
export async function setEndOfFile(
  storage: Storage,
  handle: Handle,
  { end, ...times }: ByteChangeTimes & { readonly end: number },
): Promise<void> {
  checkLength(end);
  await changeHeldBytes(storage, handle, times, WRITES, async (tx, { share, node }) =>
    changeLength(tx, storage, share, node, end),
  );
}

/** Space is allocated by writes alone; but a file is not longer than its allocation. */
export async function setAllocation(
  storage: Storage,
  handle: Handle,
  { size, ...times }: ByteChangeTimes & { readonly size: number },
): Promise<void> {
  checkLength(size);
  await changeHeldBytes(storage, handle, times, WRITES, async (tx, { share, node }) =>
    size < node.length ? changeLength(tx, storage, share, node, size) : undefined,
  );
}

/** The part of the range that is in the file becomes zeros; the file keeps its length. */
export async function zeroRange(
  storage: Storage,
  handle: Handle,
  { range, ...times }: ByteChangeTimes & { readonly range: ByteRange },
): Promise<void> {
  await changeHeldBytes(storage, handle, times, RIGHTS.writeData, async (tx, { share, node }, newId) => {
    const to = Math.min(range.to, node.length);
    return range.from < to ? clearBytes(tx, storage, share, node, { from: range.from, to }, newId) : undefined;
  });
}

/**
 * The parts of a range that were written, by sectors; of a file that is not marked as sparse, all.
 * @param rangesMax at most this many are returned; `isComplete` tells whether there are more
 */
export async function listAllocated(
  storage: Storage,
  handle: Handle,
  { from, to: end }: ByteRange,
  rangesMax: number,
): Promise<{ readonly ranges: readonly ByteRange[]; readonly isComplete: boolean }> {
  const { account, content, partition } = storage;
  return partition.read(async (at) => {
    const opened = await requireFile(at, storage, handle, RIGHTS.readData);
    const { node } = opened;
    const to = Math.min(end, node.length);
    const ranges: ByteRange[] = [];
    if (from >= to) return { ranges, isComplete: true };
    if (!(node.attributes & SPARSE))
      return rangesMax === 0 ? { ranges, isComplete: false } : { ranges: [{ from, to }], isComplete: true };
    const { map, gen } = await readSeenContent(at, storage, opened);
    const sectors = sectorsAround({ from, to: to - 1 });
    for await (const range of content.ranges.list(at, account, map, gen, sectors, { unit: SECTOR_BYTES })) {
      if (ranges.length === rangesMax) return { ranges, isComplete: false };
      ranges.push({ from: Math.max(from, range.from), to: Math.min(to, range.to) });
    }
    return { ranges, isComplete: true };
  });
}

export function changeHeldBytes(
  storage: Storage,
  handle: Handle,
  times: ByteChangeTimes,
  rights: number,
  change: ByteChange<OpenedFile>,
) {
  const queueKey = handleQueueKey(storage.account, handle);
  return changeFileBytes(storage, queueKey, times, change, async (tx) => {
    const held = await requireFile(tx, storage, handle, rights);
    checkNoPendingCopy(held.node);
    return held;
  });
}
