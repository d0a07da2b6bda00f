/** Bounded in-memory buffer of request-log lines that are not written yet. */
import type { AccessRecord, RequestKind } from '../../rules/analytics/access-record.ts';
import { formatLogLine } from '../../rules/analytics/log-lines.ts';
import { logFolder } from '../../rules/analytics/time-partitions.ts';
import type { AccountId } from '../common/storage.ts';

/** The lines of one blob. */
export interface LogPage {
  readonly account: AccountId;
  /** The prefix of the blob's name. */
  readonly folder: string;
  readonly version: string;
  readonly kinds: Set<RequestKind>;
  /** The starts of the earliest and the latest request. */
  first: bigint;
  last: bigint;
  readonly lines: string[];
}

/** 'refused': the write would fail again. 'retry': it may succeed later. */
export type WriteOutcome = 'written' | 'refused' | 'retry';

export interface LogBuffer {
  add(account: AccountId, request: AccessRecord, version: string): void;
  /** Writes each page, oldest first. A page that is to be retried stays in the buffer. */
  writeAll(write: (page: LogPage) => Promise<WriteOutcome>): Promise<void>;
  /** The number of lines that did not fit since the last call. */
  takeDropped(): number;
  readonly isHalfFull: boolean;
  clear(): void;
}

export interface LogBufferLimits {
  readonly linesMax?: number;
  readonly charactersMax?: number;
}

export function createLogBuffer({ linesMax = 50_000, charactersMax = 16 << 20 }: LogBufferLimits = {}): LogBuffer {
  const pages = new Map<string, LogPage>();
  /** Lines and characters of all pages, and of the page that is being written. */
  let lines = 0;
  let characters = 0;
  let dropped = 0;

  function release(page: LogPage): void {
    lines -= page.lines.length;
    for (const line of page.lines) characters -= line.length;
  }

  return {
    add(account, request, version) {
      const line = formatLogLine(request, version);
      if (lines >= linesMax || characters + line.length > charactersMax) {
        dropped++;
        return;
      }
      lines++;
      characters += line.length;
      const folder = logFolder(request.service, request.started);
      const key = `${account} ${version} ${folder}`;
      let page = pages.get(key);
      if (!page) {
        page = {
          ...{ account, folder, version },
          ...{ kinds: new Set(), first: request.started, last: request.started, lines: [] },
        };
        pages.set(key, page);
      }
      page.kinds.add(request.kind);
      if (request.started < page.first) page.first = request.started;
      if (request.started > page.last) page.last = request.started;
      page.lines.push(line);
    },
    async writeAll(write) {
      for (const [key, page] of [...pages]) {
        // Lines that are added during the write go to a new page.
        pages.delete(key);
        if ((await write(page)) !== 'retry') release(page);
        else requeue(key, page);
      }
    },
    takeDropped() {
      const count = dropped;
      dropped = 0;
      return count;
    },
    get isHalfFull() {
      return lines * 2 > linesMax || characters * 2 > charactersMax;
    },
    clear() {
      for (const page of pages.values()) release(page);
      pages.clear();
    },
  };

  /** Before the lines that were added during the write. */
  function requeue(key: string, page: LogPage): void {
    const newer = pages.get(key);
    if (newer) {
      for (const line of newer.lines) page.lines.push(line);
      for (const kind of newer.kinds) page.kinds.add(kind);
      if (newer.first < page.first) page.first = newer.first;
      if (newer.last > page.last) page.last = newer.last;
    }
    pages.set(key, page);
  }
}
