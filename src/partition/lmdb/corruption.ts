/** Corruption that a start can see before LMDB does: LMDB trusts its file, and on one that is none it ends the process. */
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { dataFile, PAGE_BYTES } from './files.ts';

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

/** Whether LMDB's file begins as it must. Corruption after its first two pages is for `check` to find. */
export function hasValidHeader(location: string): boolean {
  if (isNew(location)) return false;
  const file = openSync(dataFile(location), 'r');
  try {
    return [0, PAGE_BYTES].every((page) => {
      const bytes = Buffer.alloc(4);
      return readSync(file, bytes, 0, 4, page + MAGIC_AT) === 4 && bytes.readUInt32LE() === MAGIC;
    });
  } finally {
    closeSync(file);
  }
}
