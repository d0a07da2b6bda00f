/** The folder of the data: whether this process may use it, and what lies where. */
import { randomUUID } from 'node:crypto';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { StartError } from './config.ts';
import { dropBallast } from './partition/free-space.ts';

/** Of everything in the folder. A newer one is refused; so is the first one, which no release has written. */
const FORMAT = 4;
/** Such a folder is taken over with its first start, and refused by older versions since: 2 had no log, and 3 another one. */
const TAKEN_OVER: readonly number[] = [2, 3];
const BEAT_MILLISECONDS = 2_000;
/** Silent for so long, a process on another machine, or one whose number another has got since, is taken for dead. */
const SILENT_MILLISECONDS = 15_000;

/** Of a server, or for a moment of a command. */
export class FolderInUse extends StartError {}

export interface DataFolder {
  /** Where the rows lie. */
  readonly rows: string;
  /** What the user should know of this folder. */
  readonly warning: string | undefined;
  release(): void;
}

export const rowsIn = (location: string): string => join(location, 'rows');
/** The bytes of larger contents. */
export const extentsIn = (location: string): string => join(location, 'extents');
/** What --https auto has made. */
export const certificatesIn = (location: string): string => join(location, 'tls');

/** Throws a StartError, with a way out, if the folder cannot be used. */
export function openDataFolder(location: string, onLost: () => void): DataFolder {
  try {
    formatOf(location);
    makeFolder(dirname(location));
    // The keys of the accounts lie in it.
    if (!existsSync(location)) mkdirSync(location, { mode: 0o700 });
    if (!existsSync(rowsIn(location))) mkdirSync(rowsIn(location), { mode: 0o700 });
    const lock = takeLock(location, onLost);
    try {
      if (formatOf(location) !== FORMAT) writeFormat(location);
    } catch (error) {
      lock.release();
      throw error;
    }
    return { rows: rowsIn(location), warning: warningFor(location), release: lock.release };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (error instanceof StartError || code === undefined) throw error;
    throw new StartError(`Cannot write in the folder ${location} (${message}): choose another by --location.`);
  }
}

/** Node's own recursive mkdir never ends where a folder can be made neither here nor above, as in /proc. */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  mkdirSync(path);
}

/** Refuses a folder that this version cannot read; undefined: nothing was ever stored in it. */
export function formatOf(location: string): number | undefined {
  const file = join(location, 'holdfast.json');
  let format: unknown;
  try {
    format = (JSON.parse(readFileSync(file, 'utf8')) as { format?: unknown }).format;
    if (typeof format !== 'number') throw new TypeError('no format');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new StartError(`${file} cannot be read: is it one of Holdfast's? Choose another folder by --location.`);
  }
  if (format === FORMAT || TAKEN_OVER.includes(format)) return format;
  const age = format < FORMAT ? 'an older' : 'a newer';
  throw new StartError(
    `The folder ${location} was written by ${age} Holdfast (format ${format}, this one knows ${FORMAT}): use that version, or another folder by --location.`,
  );
}

function writeFormat(location: string): void {
  writeFileSync(join(location, 'holdfast.json'), `${JSON.stringify({ format: FORMAT })}\n`);
}

interface Owner {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
}

/** A file that its owner touches every two seconds. Its creation is what only one process can do. */
function takeLock(location: string, onLost: () => void): { release(): void } {
  const file = join(location, 'in-use');
  const owner: Owner = { id: randomUUID(), host: hostname(), pid: process.pid };
  const inUse = (other: Owner) =>
    new FolderInUse(
      `The folder ${location} is in use by another Holdfast (process ${other.pid} on ${other.host}): stop it, or choose another folder by --location.`,
    );
  const other = readOwner(file);
  if (other && isAlive(other, file)) throw inUse(other);
  if (other) setAside(file, other, inUse);
  else if (existsSync(file)) {
    // Somebody is just writing it, or died while he did.
    if (!isSilent(file))
      throw new FolderInUse(`Another Holdfast starts on the folder ${location} at this moment: try again.`);
    rmSync(file);
  }
  const write = () => createWhole(file, JSON.stringify(owner));
  try {
    write();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw inUse(readOwner(file) ?? owner);
    if (code !== 'ENOSPC') throw error;
    // What is stored can still be read and deleted.
    rmSync(file, { force: true });
    dropBallast(rowsIn(location));
    write();
  }

  inThisProcess.add(owner.id);
  const beat = setInterval(() => {
    try {
      const holder = JSON.parse(readFileSync(file, 'utf8')) as Owner;
      const now = new Date();
      if (holder.id === owner.id) return utimesSync(file, now, now);
    } catch (error) {
      // That it cannot be read just now, for want of descriptors say, does not mean that another has it.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return;
    }
    clearInterval(beat);
    onLost();
  }, BEAT_MILLISECONDS).unref();
  return {
    release() {
      clearInterval(beat);
      inThisProcess.delete(owner.id);
      if (readOwner(file)?.id === owner.id) rmSync(file, { force: true });
    },
  };
}

/** Fails if the file exists. It appears with all its content: who is killed here leaves no half of it. */
function createWhole(file: string, content: string): void {
  const draft = `${file}.${randomUUID()}`;
  try {
    writeFileSync(draft, content);
    linkSync(draft, file);
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall !== 'link' || code === 'EEXIST') throw error;
    // A file system without links.
    writeFileSync(file, content, { flag: 'wx' });
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Removes the lock of a dead process, unless another has done so and taken it since. */
function setAside(file: string, dead: Owner, inUse: (other: Owner) => StartError): void {
  const aside = `${file}.${process.pid}`;
  renameSync(file, aside);
  const moved = readOwner(aside);
  if (moved && moved.id !== dead.id) {
    renameSync(aside, file);
    throw inUse(moved);
  }
  rmSync(aside);
}

function readOwner(file: string): Owner | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Owner;
  } catch {
    return undefined;
  }
}

function isAlive(owner: Owner, file: string): boolean {
  const silent = isSilent(file);
  if (owner.host !== hostname()) return !silent;
  // A restarted container often has the number of the process that died in it: then it is us.
  if (owner.pid === process.pid) return inThisProcess.has(owner.id);
  try {
    process.kill(owner.pid, 0);
    return !silent;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' && !silent;
  }
}

function isSilent(file: string): boolean {
  return Date.now() - statSync(file).mtimeMs > SILENT_MILLISECONDS;
}

const inThisProcess = new Set<string>();

/** File systems whose locks or memory maps LMDB cannot rely on, by the numbers that Linux gives them. */
const UNTRUSTED: Readonly<Record<number, string>> = {
  26985: 'NFS',
  2035054128: 'overlay',
  4283649346: 'CIFS',
  4266872130: 'SMB',
  16914839: '9p',
};

function warningFor(location: string): string | undefined {
  const kind = UNTRUSTED[statfsSync(location).type];
  return (
    kind && `The folder ${location} lies on a file system (${kind}) that may lose data after a crash: use a local disk.`
  );
}
