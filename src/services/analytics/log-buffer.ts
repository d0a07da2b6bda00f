/** Lines of logs that are not written yet: so many, and no more. */
import type { AccessRecord, RequestKind } from '../../rules/analytics/access-record.ts';
import { formatLogLine } from '../../rules/analytics/log-lines.ts';
import { logFolder } from '../../rules/analytics/time-partitions.ts';
import type { AccountId } from '../common/storage.ts';

/** What goes into one blob. */
export interface LogPage {
  readonly account: AccountId;
  /** The beginning of the blob's name. */
  readonly folder: string;
  readonly version: string;
  readonly kinds: Set<RequestKind>;
  /** When the first and the last of the requests began. */
  first: bigint;
  last: bigint;
  readonly lines: string[];
}

export interface LogBuffer {
  add(account: AccountId, request: AccessRecord, version: string): void;
  /** Hands each page over, oldest first. One that fails stays for another time, unless it is refused for good. */
  writeAll(write: (page: LogPage) => Promise<'written' | 'refused' | 'later'>): Promise<void>;
  /** How many did not fit since this was asked last. */
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
        // What comes from now on goes to another page.
        pages.delete(key);
        if ((await write(page)) !== 'later') release(page);
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

  /** In front of what has come meanwhile. */
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
