/** How LMDB's file is opened, and how a row lies in it. */
import { join } from 'node:path';
import { type Database, open, type RootDatabase, type Transaction } from 'lmdb';
import type { Key } from '../keys.ts';
import type { Stamp } from '../partition.ts';

export const dataFile = (location: string): string => join(location, 'data.mdb');

export interface LmdbFiles {
  readonly environment: RootDatabase;
  /** Key -> eight bytes of version, then the value. */
  readonly rows: Rows;
  /** What the engine itself remembers. */
  readonly own: Database<Buffer, string>;
}

/** lmdb's own types leave out that a read may name its transaction. */
export interface Rows extends Omit<Database<Buffer, Key>, 'getBinaryFast' | 'getRange'> {
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
  }): Iterable<{ key: Key; value: Stored }>;
}

/** What a scan makes of each row. */
export interface Stored {
  readonly version: Stamp;
  readonly value: Buffer;
}

export const PAGE_BYTES = 8192;

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
    keyEncoder: keysAsBytes,
    encoding: 'binary',
    encoder: bytesAsTheyAre,
  } as object) as unknown as Rows;
  const own = environment.openDB<Buffer, string>('own', { encoding: 'binary' });
  return { environment, rows, own };
}

const keysAsBytes = {
  writeKey: (key: Key, target: Buffer, position: number) => position + target.write(key, position, 'latin1'),
  readKey: (source: Buffer, start: number, end: number) => source.toString('latin1', start, end) as Key,
};

/**
 * What a scan does with each value. lmdb reads into one buffer again and again, whose length is not its own; a copy from Node's
 * pool costs less than lmdb's, which has memory of its own.
 */
const bytesAsTheyAre = {
  encode: (bytes: Buffer) => bytes,
  decode(shared: Buffer, size: number): Stored {
    if (read !== shared) {
      read = shared;
      whole = Buffer.from(shared.buffer as ArrayBuffer, shared.byteOffset);
    }
    const value = Buffer.allocUnsafe(size - 8);
    whole.copy(value, 0, 8, size);
    return { version: versionIn(whole), value };
  },
};
let read: Buffer | undefined;
let whole = Buffer.alloc(0);

export function versionIn(stored: Buffer): Stamp {
  return stored.readBigUInt64BE();
}

/** What the engine remembers: the last segment of the log that this state holds, and the instant before which the store was last used. */
type OwnNumber = 'applied' | 'high-water';

export function ownNumber(own: LmdbFiles['own'], name: OwnNumber, transaction?: Transaction): bigint {
  return own.get(name, transaction && { transaction })?.readBigUInt64BE() ?? 0n;
}

export function setOwnNumber(own: LmdbFiles['own'], name: OwnNumber, value: bigint): void {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  own.putSync(name, bytes);
}

/** Where the pages in use end, and how many bytes before that removed rows gave back: new rows take them first. */
export function extentOf({ rows, own }: LmdbFiles): { end: number; free: number } {
  rows.resetReadTxn();
  const { root, free, lastPageNumber, ...tree } = rows.getStats() as FileStats;
  const metaPages = 2;
  const used = [tree, own.getStats() as TreeStats, root, free].reduce((sum, each) => sum + pagesOf(each), metaPages);
  const pages = lastPageNumber + 1;
  return { end: pages * tree.pageSize, free: Math.max(0, pages - used) * tree.pageSize };
}

interface TreeStats {
  readonly pageSize: number;
  readonly treeBranchPageCount: number;
  readonly treeLeafPageCount: number;
  readonly overflowPages: number;
}

interface FileStats extends TreeStats {
  readonly root: TreeStats;
  readonly free: TreeStats;
  readonly lastPageNumber: number;
}

function pagesOf({ treeBranchPageCount, treeLeafPageCount, overflowPages }: TreeStats): number {
  return treeBranchPageCount + treeLeafPageCount + overflowPages;
}
