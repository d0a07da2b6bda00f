/** Corruption that a start can see before LMDB does: LMDB trusts its file, and on one that is none it ends the process. */
import { existsSync, statSync } from 'node:fs';
import { dataFile, META_PAGES, PAGE_BYTES, readBeginning } from './files.ts';
import { dataBytesIn } from './wal.ts';

const MAGIC = 0xbeefc0de;
const MAGIC_AT = 24;

/** Rows that were acknowledged cannot be read. */
export class CorruptionError extends Error {
  override readonly name = 'CorruptionError';
}

/** Nothing was ever stored here, or a first start was killed before it stored anything. */
export function isNew(location: string): boolean {
  const file = dataFile(location);
  return !existsSync(file) || statSync(file).size === 0;
}

/** Whether LMDB's file begins as it must, and was not cut off. Corruption after its first two pages is for `check` to find. */
export function hasValidHeader(location: string): boolean {
  if (isNew(location) || statSync(dataFile(location)).size < dataBytesIn(location)) return false;
  const pages = readBeginning(dataFile(location), Buffer.alloc(META_PAGES * PAGE_BYTES));
  const isWhole = pages.length === META_PAGES * PAGE_BYTES;
  return isWhole && [0, PAGE_BYTES].every((page) => pages.readUInt32LE(page + MAGIC_AT) === MAGIC);
}
