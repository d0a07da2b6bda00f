/** The states of LMDB's file to which a crash may lead back. */
import { fdatasync, fdatasyncSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { LmdbFiles } from './lmdb-files.ts';
import { BASE_BYTES, type Log } from './lmdb-log.ts';
import { isFull } from './synced-files.ts';

export const dataFile = (location: string): string => join(location, 'data.mdb');

/** A state whose pages are not used again until it ends. */
export interface Pinned {
  /** The pages that lead to it. */
  readonly base: Buffer;
  end(): void;
}

/** The last committed state. */
export function pin({ rows }: LmdbFiles, data: number): Pinned {
  for (;;) {
    const base = pagesIn(data);
    rows.resetReadTxn();
    const reader = rows.useReadTransaction();
    // Where another engine commits at this moment, the reader may have come behind that.
    if (base.equals(pagesIn(data))) return { base, end: () => reader.done() };
    reader.done();
  }
}

export function pagesIn(data: number): Buffer {
  const pages = Buffer.alloc(BASE_BYTES);
  readSync(data, pages, 0, BASE_BYTES, 0);
  return pages;
}

export interface Bases {
  /** After each group; the file follows the log when it is worth it, behind everybody's back. */
  written(pages: number): void;
  /** Whether the file is on its way, and the event loop will hear of its arrival. */
  isFollowing(): boolean;
  /** The file has followed when this returns. */
  catchUp(): void;
}

/** Pages that are not used again before the next base: the file grows by no more than twice this. */
const PAGES_MAX = 2_048;
const LOG_BYTES_MAX = 8 << 20;
/** A disk that is so slow makes writers wait. */
const LOG_BYTES_WAIT = 64 << 20;
const IDLE_MILLISECONDS = 1_000;

/** @param onFailure the file cannot be trusted any more */
export function startBases(location: string, files: LmdbFiles, log: Log, onFailure: (error: Error) => void): Bases {
  const data = openSync(dataFile(location), 'r+');
  let settled = pin(files, data);
  let next: Pinned | undefined;
  let pages = 0;
  let pagesSeen = 0;

  function begin(): void {
    const begun = pin(files, data);
    try {
      log.begin(begun.base);
    } catch (error) {
      begun.end();
      if (!isFull(error)) throw error;
      return;
    }
    next = begun;
    pages = 0;
    fdatasync(data, (error) => {
      if (next !== begun) return;
      if (error) return onFailure(error);
      try {
        settle(begun);
      } catch (fault) {
        onFailure(fault as Error);
      }
    });
  }

  function settle(begun: Pinned): void {
    log.settle();
    settled.end();
    settled = begun;
    next = undefined;
  }

  function catchUp(): void {
    if (!next) begin();
    if (!next) return;
    fdatasyncSync(data);
    settle(next);
  }

  setInterval(() => {
    try {
      if (pages > 0 && pages === pagesSeen && !next) begin();
      pagesSeen = pages;
    } catch (error) {
      onFailure(error as Error);
    }
  }, IDLE_MILLISECONDS).unref();

  return {
    written(more) {
      pages += more;
      if (!next && (pages > PAGES_MAX || log.bytes > LOG_BYTES_MAX)) begin();
      else if (log.bytes > LOG_BYTES_WAIT) catchUp();
    },
    isFollowing: () => next !== undefined,
    catchUp,
  };
}
