/** Corruption checks before LMDB opens its file, which it trusts: a file cut off or of another format would end the process. */
import { existsSync, statSync } from 'node:fs';
import { dataFile, META_PAGES, PAGE_BYTES, readBeginning } from './files.ts';
import { dataBytesMin } from './wal.ts';

const MAGIC = 0xbeefc0de;
const MAGIC_AT = 24;

/** Acknowledged rows cannot be read. */
export class CorruptionError extends Error {
  override readonly name = 'CorruptionError';
}

/** Also if the first start was killed before it stored anything. */
export function isNew(location: string): boolean {
  const file = dataFile(location);
  return !existsSync(file) || statSync(file).size === 0;
}

/** Whether LMDB's meta pages are there, and the file was not cut off. `check` finds corruption after them. */
export function hasValidHeader(location: string): boolean {
  if (isNew(location) || statSync(dataFile(location)).size < dataBytesMin(location)) return false;
  const pages = readBeginning(dataFile(location), Buffer.alloc(META_PAGES * PAGE_BYTES));
  const isWhole = pages.length === META_PAGES * PAGE_BYTES;
  return isWhole && [0, PAGE_BYTES].every((page) => pages.readUInt32LE(page + MAGIC_AT) === MAGIC);
}
