/** LMDB trusts its file: on one that is none it ends the process. So its first bytes are looked at before it sees them. */
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { PAGE_BYTES } from './lmdb-files.ts';

const MAGIC = 0xbeefc0de;
const MAGIC_AT = 24;

export class DamagedRows extends Error {
  override readonly name = 'DamagedRows';
}

/** Nothing was ever stored here, or a first start was killed before it stored anything. */
export function isNew(location: string): boolean {
  const file = join(location, 'data.mdb');
  return !existsSync(file) || statSync(file).size === 0;
}

/** Whether the two pages that lead to all others are what they must be. Damage behind them is for `check` to find. */
export function looksSound(location: string): boolean {
  if (isNew(location)) return false;
  const file = openSync(join(location, 'data.mdb'), 'r');
  try {
    return [0, PAGE_BYTES].every((page) => {
      const bytes = Buffer.alloc(4);
      return readSync(file, bytes, 0, 4, page + MAGIC_AT) === 4 && bytes.readUInt32LE() === MAGIC;
    });
  } finally {
    closeSync(file);
  }
}
