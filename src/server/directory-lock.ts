/**
 * Exclusive advisory lock (flock) on a file of the data directory. The kernel releases it when its process ends, however that
 * ends; a process that is only paused keeps it. The file is never removed: a second process could then lock a new one.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readFileSync, statSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { StartError } from './config.ts';

/** By a server, or for a moment by a command. */
export class DirectoryInUse extends StartError {}

export interface DirectoryLock {
  /** Called before each write: notices the loss of the lock at once, not at the next periodic check. */
  check(): void;
  release(): void;
}

/** False: another open file has the lock. Throws where the file system has no locks. */
export type TryLock = (descriptor: number) => boolean;

const CHECK_MILLISECONDS = 1_000;

/** @param onLost the file that is locked is no longer the one in the folder: another process may work on the folder */
export function lockDirectory(location: string, onLost: () => void, tryLock: TryLock = chooseLock()): DirectoryLock {
  const file = join(location, 'holdfast.lock');
  const descriptor = openLocked(file, location, tryLock);
  writeOwner(descriptor);
  const watch = setInterval(() => {
    if (isSameFile(descriptor, file)) return;
    clearInterval(watch);
    onLost();
  }, CHECK_MILLISECONDS).unref();
  return {
    check() {
      // No name leads to the file any more: it was removed or replaced.
      if (fstatSync(descriptor).nlink === 0) onLost();
    },
    release() {
      clearInterval(watch);
      closeSync(descriptor);
    },
  };
}

function openLocked(file: string, location: string, tryLock: TryLock): number {
  for (;;) {
    const descriptor = openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
    try {
      if (!tryLock(descriptor)) throw new DirectoryInUse(inUseMessage(location, file));
      // If the file was replaced between the two calls, this lock is on a file that no other process opens.
      if (isSameFile(descriptor, file)) return descriptor;
    } catch (error) {
      closeSync(descriptor);
      throw error;
    }
    closeSync(descriptor);
  }
}

/** Whether the name still leads to the open file. Only ENOENT is proof that it does not: other errors, as for want of descriptors, say nothing. */
function isSameFile(descriptor: number, file: string): boolean {
  const held = fstatSync(descriptor, { bigint: true });
  try {
    const found = statSync(file, { bigint: true });
    return found.ino === held.ino && found.dev === held.dev;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}

/** For the message of a process that finds the folder locked; a full disk is no reason not to start. */
function writeOwner(descriptor: number): void {
  try {
    ftruncateSync(descriptor);
    writeSync(descriptor, `process ${process.pid} on ${hostname()}\n`, 0);
  } catch {
    // The lock does not need it.
  }
}

function inUseMessage(location: string, file: string): string {
  return `The folder ${location} is in use by another Holdfast${readOwner(file)}: stop it, or choose another folder by --location.`;
}

/** On Windows a file that another process has locked cannot be read. */
function readOwner(file: string): string {
  try {
    const owner = readFileSync(file, 'utf8').trim();
    return owner && ` (${owner})`;
  } catch {
    return '';
  }
}

let chosenLock: TryLock | undefined;
export function chooseLock(): TryLock {
  chosenLock ??= loadNativeLock() ?? lockByFlockCommand;
  return chosenLock;
}

const NATIVE = 'fs-native-extensions';

/**
 * Undefined where the package has no binary. Its own loader would cost a start 10 ms, and passes over the binary on Alpine
 * Linux, where it works: so package.json names one version of it.
 */
function loadNativeLock(): TryLock | undefined {
  const binary = `${NATIVE}/prebuilds/${process.platform}-${process.arch}/${NATIVE}.node`;
  let native: { tryLock(descriptor: number, offset: number, length: number, exclusive: boolean): void };
  try {
    native = createRequire(import.meta.url)(binary);
  } catch {
    return undefined;
  }
  return (descriptor) => {
    try {
      // No length: all of the file.
      native.tryLock(descriptor, 0, 0, true);
      return true;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      // EBUSY on Windows.
      if (code === 'EAGAIN' || code === 'EBUSY') return false;
      throw cannotLock(message);
    }
  };
}

/** util-linux and busybox have the command. A lock by flock(2) belongs to the open file description, which the command shares with this process. */
export function lockByFlockCommand(descriptor: number): boolean {
  const stdio = ['ignore', 'ignore', 'pipe', descriptor] as const;
  const { status, error, stderr } = spawnSync('flock', ['-x', '-n', '3'], { stdio: [...stdio] });
  if (status === 0) return true;
  if (status === 1) return false;
  throw cannotLock(error?.message ?? String(stderr).trim());
}

function cannotLock(reason: string): StartError {
  return new StartError(
    `The data folder cannot be locked (${reason}): two servers could work on it at once. Choose a folder on a local disk by --location.`,
  );
}
