/** LMDB's file: how it is opened, the format of a row in it, and plain reads and writes of files. */
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
  readonly meta: Database<Buffer, string>;
}

/** lmdb's own types lack the transaction of a read. */
export interface RowsDatabase extends Omit<Database<Buffer, Key>, 'getBinaryFast' | 'getRange'> {
  getBinaryFast(key: Key, options?: { transaction: Transaction }): Buffer | undefined;
  /** The length of the stored row in the buffer of the last `getBinaryFast`. */
  readonly lastSize: number;
  getRange(options: {
    start: Key;
    end?: Key;
    reverse?: boolean;
    exclusiveStart?: boolean;
    inclusiveEnd?: boolean;
    transaction?: Transaction;
  }): Iterable<{ key: Key; value: DecodedRow }>;
}

interface DecodedRow {
  readonly version: Timestamp;
  readonly value: Buffer;
}

export const PAGE_BYTES = 8192;
/** The roots of the last two committed states. */
export const META_PAGES = 2;
/** LMDB's limit, at any page size. */
export const KEY_BYTES_MAX = 4_026;

/** Checkpoints with open snapshots, in all processes. */
const READERS_MAX = 1_024;

export function openFiles(location: string, { readOnly = false } = {}): LmdbFiles {
  const environment = open({
    path: location,
    // Otherwise lmdb begins transactions on unsynced pages; see docs/adr/0026-write-ahead-log-and-checkpoints.md.
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
  const meta = environment.openDB<Buffer, string>('own', { encoding: 'binary' });
  return { environment, rows, meta };
}

const rowKeyEncoder = {
  writeKey: (key: Key, target: Buffer, position: number) => position + target.write(key, position, 'latin1'),
  readKey: (source: Buffer, start: number, end: number) => source.toString('latin1', start, end) as Key,
};

/** For scans: lmdb reads every row into one shared buffer, and a copy from Node's pool costs less than lmdb's own copy. */
const rowEncoder = {
  encode: (bytes: Buffer) => bytes,
  decode(shared: Buffer, size: number): DecodedRow {
    if (lastShared !== shared) {
      lastShared = shared;
      // `shared` may be shorter than the row.
      wholeBuffer = Buffer.from(shared.buffer as ArrayBuffer, shared.byteOffset);
    }
    return decodeRow(wholeBuffer, size);
  },
};
let lastShared: Buffer | undefined;
let wholeBuffer = Buffer.alloc(0);

/** Copies the value. */
export function decodeRow(stored: Buffer, size: number): DecodedRow {
  const value = Buffer.allocUnsafe(size - 8);
  stored.copy(value, 0, 8, size);
  return { version: decodeVersion(stored), value };
}

export function decodeVersion(stored: Buffer): Timestamp {
  return stored.readBigUInt64BE();
}

/** The last segment that this state contains, and the high-water mark of the clock. */
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

/** The end of the pages in use, and the bytes of free pages before it, which new rows take first. */
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

export function writeAll(descriptor: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(descriptor, bytes, done, bytes.length - done, position + done);
}

/** Shorter than `into` where the file is. */
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

/** Durable when it returns. */
export function writeBeginning(file: string, bytes: Buffer): void {
  const descriptor = openSync(file, 'r+');
  try {
    writeAll(descriptor, bytes, 0);
    fdatasyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Whether a write failed for lack of space, which changed nothing. Not a failed sync: its effect is unknown. */
export function isDiskFull(error: unknown): boolean {
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException;
  return ['ENOSPC', 'EDQUOT'].includes(code) && !syscall.endsWith('sync');
}
