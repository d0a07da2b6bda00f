/** The data directory: its layout, its format version, and the lock that one process holds on it. */
import { existsSync, readFileSync, rmSync, statfsSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { makeFolderDurably, writeFileDurably } from '../base/durable-files.ts';
import { removeReserveFile } from '../partition/lmdb/disk-space.ts';
import { DEFAULT_LOCATION, StartError } from './config.ts';
import { DirectoryInUse, type DirectoryLock, lockDirectory } from './directory-lock.ts';

/** Version of everything in the folder. A newer one is refused; so is version 1, which no release has written. */
const FORMAT = 10;
/**
 * The first start upgrades such a folder, and older versions refuse it from then on: 2 had no write-ahead log, 3 another one, in 4 the head of
 * a log segment did not have the length of LMDB's file, 5 had neither tags nor older states of blobs, 6 no files, 7 another form of their rows,
 * 8 no snapshots of shares, and in 9 map pages named all short writes.
 */
const UPGRADABLE_FORMATS: readonly number[] = [2, 3, 4, 5, 6, 7, 8, 9];

export interface DataDirectory {
  /** Where the rows lie. */
  readonly rows: string;
  /** Ticks by which commit timestamps are ahead of the date, because the time of the data was set back. */
  readonly lead: bigint;
  /** For the user, about this folder. */
  readonly warnings: readonly string[];
  /** Called before each write to the rows: calls `onLost` if the lock is gone. */
  checkLock(): void;
  release(): void;
}

export const rowsPath = (location: string): string => join(location, 'rows');
/** The bytes of larger contents. */
export const extentsPath = (location: string): string => join(location, 'extents');
/** The certificates of --https auto. */
export const certificatesPath = (location: string): string => join(location, 'tls');

/** Throws a StartError if the folder cannot be used. */
export function openDataDirectory(location: string, onLost: () => void): DataDirectory {
  try {
    const isNew = readSupportedFormat(location) === undefined;
    // For the owner only: the folder holds the keys of the accounts.
    makeFolderDurably(location, 0o700);
    makeFolderDurably(rowsPath(location), 0o700);
    const lock = acquireLock(location, onLost);
    try {
      checkNoOlderServer(location);
      if (readSupportedFormat(location) !== FORMAT) writeFormatFile(location, readClockLead(location));
    } catch (error) {
      lock.release();
      throw error;
    }
    const { check: checkLock, release } = lock;
    return {
      rows: rowsPath(location),
      lead: readClockLead(location),
      warnings: [fileSystemWarning(location), isNew ? azuriteWarning(location) : undefined].filter(
        (warning) => warning !== undefined,
      ),
      checkLock,
      release,
    };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (error instanceof StartError || code === undefined) throw error;
    throw new StartError(`Cannot write in the folder ${location} (${message}): choose another by --location.`);
  }
}

/** On a full disk the reserve file makes room for the lock file: stored data can still be read and deleted. */
function acquireLock(location: string, onLost: () => void): DirectoryLock {
  try {
    return lockDirectory(location, onLost);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    removeReserveFile(rowsPath(location));
    return lockDirectory(location, onLost);
  }
}

/** Versions up to format 3 marked the folder as used by a file that they touched every two seconds. */
function checkNoOlderServer(location: string): void {
  const file = join(location, 'in-use');
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat) return;
  if (Date.now() - stat.mtimeMs < 15_000)
    throw new DirectoryInUse(
      `An older Holdfast works on the folder ${location}, or did a moment ago: stop it, and try again.`,
    );
  rmSync(file);
}

/** Throws for a folder that this version cannot read; undefined: the folder has no data yet. */
export function readSupportedFormat(location: string): number | undefined {
  const format = readFormatFile(location)?.format;
  if (format === undefined) return undefined;
  if (format === FORMAT || UPGRADABLE_FORMATS.includes(format)) return format;
  const age = format < FORMAT ? 'an older' : 'a newer';
  throw new StartError(
    `The folder ${location} was written by ${age} Holdfast (format ${format}, this one knows ${FORMAT}): use that version, or another folder by --location.`,
  );
}

export function readClockLead(location: string): bigint {
  return readFormatFile(location)?.lead ?? 0n;
}

interface FormatFile {
  readonly format: number;
  /** Written only by the holder of the lock (`clock --set-back`). */
  readonly lead: bigint;
}

const formatFilePath = (location: string): string => join(location, 'holdfast.json');

function readFormatFile(location: string): FormatFile | undefined {
  const file = formatFilePath(location);
  try {
    const { format, lead = '0' } = JSON.parse(readFileSync(file, 'utf8')) as { format?: unknown; lead?: string };
    if (typeof format !== 'number') throw new TypeError('no format');
    return { format, lead: BigInt(lead) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new StartError(`${file} cannot be read: is it one of Holdfast's? Choose another folder by --location.`);
  }
}

/** The caller holds the lock of the folder. */
export function writeFormatFile(location: string, lead: bigint): void {
  const description = { format: FORMAT, ...(lead > 0n && { lead: String(lead) }) };
  writeFileDurably(formatFilePath(location), `${JSON.stringify(description)}\n`, { mode: 0o644 });
}

/** The databases of the emulator's services. */
const AZURITE_FILES = ['blob', 'queue', 'table'].map((service) => `__azurite_db_${service}__.json`);

/** The emulator keeps its data in the current folder, beside which ours is a folder of its own. */
function azuriteWarning(location: string): string | undefined {
  const folders = basename(location) === DEFAULT_LOCATION ? [location, dirname(location)] : [location];
  const found = folders.find((folder) => AZURITE_FILES.some((file) => existsSync(join(folder, file))));
  if (found === undefined) return undefined;
  return `The data of Azurite in ${found} is not served, this folder begins empty: holdfast import --from-azurite ${found} brings it over.`;
}

/** File systems whose locks or memory maps LMDB cannot rely on, by the numbers that Linux gives them. */
const UNSAFE_FILE_SYSTEMS: Readonly<Record<number, string>> = {
  26985: 'NFS',
  2035054128: 'overlay',
  4283649346: 'CIFS',
  4266872130: 'SMB',
  16914839: '9p',
};

function fileSystemWarning(location: string): string | undefined {
  const kind = UNSAFE_FILE_SYSTEMS[statfsSync(location).type];
  return (
    kind && `The folder ${location} lies on a file system (${kind}) that may lose data after a crash: use a local disk.`
  );
}
