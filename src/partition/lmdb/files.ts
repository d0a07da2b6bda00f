/** LMDB's file: how it is opened, how a row lies in it, and plain reads and writes of files beside it. */

import { closeSync, fdatasyncSync, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { type Database, open, type RootDatabase, type Transaction } from 'lmdb';
import type { Key } from '../keys.ts';
import type { Timestamp } from '../partition.ts';

export const dataFile = (location: string): string => join(location, 'data.mdb');

export interface LmdbFiles {
  readonly environment: RootDatabase;
  /** Key -> eight bytes of version, then the value. */
  readonly rows: RowsDatabase;
  /** What the engine itself remembers. */
  readonly meta: Database<Buffer, string>;
}

/** lmdb's own types leave out that a read may name its transaction. */
export interface RowsDatabase extends Omit<Database<Buffer, Key>, 'getBinaryFast' | 'getRange'> {
  getBinaryFast(key: Key, options?: { transaction: Transaction }): Buffer | undefined;
  /** How much of that buffer is the value. */
  readonly lastSize: number;
  getRange(options: {
    start: Key;
    end: Key;
    limit?: number;
    reverse?: boolean;
    exclusiveStart?: boolean;
    inclusiveEnd?: boolean;
    transaction?: Transaction;
  }): Iterable<{ key: Key; value: StoredRow }>;
}

/** What a scan makes of each row. */
export interface StoredRow {
  readonly version: Timestamp;
  readonly value: Buffer;
}

export const PAGE_BYTES = 8192;
/** They tell of the last two states; everything is found from there. */
export const META_PAGES = 2;
/** At any page size. */
export const KEY_BYTES_MAX = 4_026;

/** Checkpoints that somebody still reads, in this process or another. */
const READERS_MAX = 1_024;

export function openFiles(location: string, { readOnly = false } = {}): LmdbFiles {
  const environment = open({
    path: location,
    // Otherwise lmdb begins a transaction on pages that no sync has confirmed; see docs/adr/0026-write-ahead-log-and-checkpoints.md.
    overlappingSync: false,
    pageSize: PAGE_BYTES,
    maxDbs: 4,
    maxReaders: READERS_MAX,
    readOnly,
  });
  const rows = environment.openDB<Buffer, Key>('rows', {
    keyEncoder: rowKeyEncoder,
    encoding: 'binary',
    encoder: rowEncoder,
  } as object) as unknown as RowsDatabase;
  const own = environment.openDB<Buffer, string>('own', { encoding: 'binary' });
  return { environment, rows, meta: own };
}

const rowKeyEncoder = {
  writeKey: (key: Key, target: Buffer, position: number) => position + target.write(key, position, 'latin1'),
  readKey: (source: Buffer, start: number, end: number) => source.toString('latin1', start, end) as Key,
};

/**
 * What a scan does with each value. lmdb reads into one buffer again and again, whose length is not its own; a copy from Node's
 * pool costs less than lmdb's, which has memory of its own.
 */
const rowEncoder = {
  encode: (bytes: Buffer) => bytes,
  decode(shared: Buffer, size: number): StoredRow {
    if (read !== shared) {
      read = shared;
      whole = Buffer.from(shared.buffer as ArrayBuffer, shared.byteOffset);
    }
    const value = Buffer.allocUnsafe(size - 8);
    whole.copy(value, 0, 8, size);
    return { version: decodeVersion(whole), value };
  },
};
let read: Buffer | undefined;
let whole = Buffer.alloc(0);

export function decodeVersion(stored: Buffer): Timestamp {
  return stored.readBigUInt64BE();
}

/** What the engine remembers: the last segment of the log that this state holds, and the instant before which the store was last used. */
type MetaKey = 'applied' | 'high-water';

export function readMeta(meta: LmdbFiles['meta'], name: MetaKey, transaction?: Transaction): bigint {
  return meta.get(name, transaction && { transaction })?.readBigUInt64BE() ?? 0n;
}

export function writeMeta(meta: LmdbFiles['meta'], name: MetaKey, value: bigint): void {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  meta.putSync(name, bytes);
}

type TreeStats = Readonly<Record<'pageSize' | 'treeBranchPageCount' | 'treeLeafPageCount' | 'overflowPages', number>>;
type FileStats = TreeStats & { readonly root: TreeStats; readonly free: TreeStats; readonly lastPageNumber: number };

/** Where the pages in use end, and how many bytes before that removed rows gave back: new rows take them first. */
export function fileUsage({ rows, meta }: LmdbFiles): { end: number; free: number } {
  rows.resetReadTxn();
  const stats = rows.getStats() as FileStats;
  const trees = [stats, meta.getStats() as TreeStats, stats.root, stats.free];
  const pages = stats.lastPageNumber + 1;
  const unused = trees.reduce(
    (left, tree) => left - tree.treeBranchPageCount - tree.treeLeafPageCount - tree.overflowPages,
    pages - META_PAGES,
  );
  return { end: pages * stats.pageSize, free: Math.max(0, unused) * stats.pageSize };
}

export { syncFolderSync as syncFolder } from '../../base/durable-files.ts';

export function writeAll(descriptor: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(descriptor, bytes, done, bytes.length - done, position + done);
}

/** The beginning of a file, into this memory, as far as the file goes. */
export function readBeginning(file: string, into: Buffer): Buffer {
  const descriptor = openSync(file, 'r');
  try {
    let end = 0;
    for (let read = 1; read > 0 && end < into.length; end += read) {
      read = readSync(descriptor, into, end, into.length - end, end);
    }
    return into.subarray(0, end);
  } finally {
    closeSync(descriptor);
  }
}

/** On disk when it returns. */
export function writeBeginning(file: string, bytes: Buffer): void {
  const descriptor = openSync(file, 'r+');
  try {
    writeAll(descriptor, bytes, 0);
    fdatasyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Whether there was no room, and all is as it was. A sync that failed is another matter: nobody knows what it left. */
export function isDiskFull(error: unknown): boolean {
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException;
  return ['ENOSPC', 'EDQUOT'].includes(code) && !syscall.endsWith('sync');
}
