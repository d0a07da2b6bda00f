/** Counts for `check` what the rows of one committed state say of each other. */
import {
  beginningsIn,
  cellOffset,
  cellsIn,
  decodeCell,
  decodeChunk,
  decodeContent,
  decodeTrash,
  idOf,
  type Part,
  textOf,
} from '../../content/rows.ts';
import { decodeKey, type Range } from '../../partition/keys.ts';
import { counterOf, type Row } from '../../partition/partition.ts';
import { decodeHead } from '../blob/blob-record.ts';
import { blocksIn, decodeBlock, decodeStage } from '../blob/rows.ts';
import { decodeAccount, removedId } from '../common/account-rows.ts';
import { decodeName } from '../common/names.ts';
import type { AccountId } from '../common/storage.ts';
import { countsAll } from '../queue/message-counts.ts';
import { decodeQueue } from '../queue/rows.ts';

/** Things are known by account and id. */
export interface Counts {
  /** Those that are there, and those that are to be swept. */
  readonly accounts: Set<AccountId>;
  /** Queues and tables, too, each with its service. */
  readonly containers: Set<string>;
  /** Containers, contents and stages that are to be swept. */
  readonly trashed: Set<string>;
  /** Those of them whose pieces are no users of their chunks, and where their rows lie. */
  readonly uncounted: Set<string>;
  readonly uncountedRows: Range[];
  readonly contents: Map<string, ContentCount>;
  readonly stages: Map<string, StageCount>;
  readonly chunks: Map<string, ChunkCount>;
  readonly live: Map<string, LiveCount>;
  /** By queue and generation. */
  readonly queues: Map<string, QueueCount>;
}

export interface ContentCount {
  /** What its row says, if it has one. */
  row?: { readonly length: number };
  heads: number;
  /** Behind the last cell. */
  end: number;
  /** Where the first byte is that no cell has, or two have. */
  gap?: number;
}

interface StageCount {
  /** A blob has it. */
  named?: true;
  blocks: number;
}

interface ChunkCount {
  row?: { readonly length: number };
  users: number;
}

interface LiveCount {
  row: number;
  bytes: number;
}

interface QueueCount {
  /** The queue whose generation this is. */
  name?: string;
  messages: number;
  counted: number;
}

export const nameOf = (account: unknown, id: unknown): string => `${account}/${id}`;

export function newCounts(): Counts {
  return {
    accounts: new Set(),
    containers: new Set(),
    trashed: new Set(),
    uncounted: new Set(),
    uncountedRows: [],
    contents: new Map(),
    stages: new Map(),
    chunks: new Map(),
    live: new Map(),
    queues: new Map(),
  };
}

/** Throws where a row cannot be read: that is reported when the turn comes to the row itself. */
export function count(counts: Counts, row: Row): void {
  const [account, type, ...rest] = decodeKey(row.key) as [AccountId | string, string, ...unknown[]];
  if (typeof account !== 'bigint') {
    if (account === 'account') counts.accounts.add(decodeAccount(row).id);
    if (account === 'removed') counts.accounts.add(removedId(row.key));
    return;
  }
  const content = (id: unknown) => entry(counts.contents, nameOf(account, id), { heads: 0, end: 0 });
  const stage = (id: unknown) => entry(counts.stages, nameOf(account, id), { blocks: 0 });
  const chunk = (id: unknown) => entry(counts.chunks, nameOf(account, id), { users: 0 });
  const queue = (id: unknown, gen: unknown) =>
    entry(counts.queues, nameOf(account, `${id}-${gen}`), { messages: 0, counted: 0 });
  const live = (extent: unknown) => entry(counts.live, nameOf(account, extent), { row: 0, bytes: 0 });
  const use = (parts: readonly Part[]) => {
    for (const part of parts) chunk(textOf(part.chunk)).users++;
  };
  switch (type) {
    case 'n':
      counts.containers.add(nameOf(account, `${rest[0]} ${decodeName(row)}`));
      if (rest[0] === 'queue') {
        const { id, gen } = decodeQueue(account, row);
        queue(id, gen).name = rest[1] as string;
      }
      return;
    case 'x': {
      const trash = decodeTrash(row);
      if (trash.kind === 'rows') {
        for (const beginning of beginningsIn(trash)) counts.trashed.add(`rows ${beginning}`);
        return;
      }
      const id = { container: 'container', content: 'content', stage: 'stage' }[trash.kind] as keyof typeof trash;
      const name = `${trash.kind} ${nameOf(account, trash[id])}`;
      counts.trashed.add(name);
      if (trash.kind === 'container' || !trash.uncounted) return;
      counts.uncounted.add(name);
      const rowsOf = trash.kind === 'content' ? cellsIn : blocksIn;
      counts.uncountedRows.push(rowsOf(account, idOf(trash.kind === 'content' ? trash.content : trash.stage)));
      return;
    }
    case 'b': {
      const { contentId } = decodeHead(row);
      if (contentId !== undefined) content(contentId).heads++;
      return;
    }
    case 'c': {
      const { length } = decodeContent(row);
      content(`${rest[0]}-${rest[1]}`).row = { length };
      return;
    }
    case 'm': {
      const pieces = decodeCell(row);
      const known = content(`${rest[0]}-${rest[1]}`);
      const offset = cellOffset(row.key);
      if (offset !== known.end) known.gap ??= Math.min(offset, known.end);
      known.end = pieces.reduce((end, { length }) => end + length, offset);
      use(pieces.flatMap(({ parts }) => parts));
      return;
    }
    case 'u': {
      stage(textOf(decodeStage(row).id)).named = true;
      return;
    }
    case 'y':
      stage(`${rest[0]}-${rest[1]}`).blocks++;
      use(decodeBlock(row).parts);
      return;
    case 'k': {
      const { place } = decodeChunk(row);
      chunk(`${rest[0]}-${rest[1]}`).row = { length: place.length };
      live(place.extent).bytes += place.length;
      return;
    }
    case 'l':
      live(rest[0]).row = Number(counterOf(row));
      return;
    case 'q':
      queue(rest[0], rest[1]).messages++;
      return;
    case '#':
      if (countsAll(rest[2])) queue(rest[0], rest[1]).counted += Number(counterOf(row));
  }
}

/** Takes back what `count` has counted of a row, a cell or a block, that turns out to be uncounted. */
export function uncount(counts: Counts, row: Row): void {
  const [account] = decodeKey(row.key);
  for (const { parts } of decodeCell(row))
    for (const part of parts) counts.chunks.get(nameOf(account, textOf(part.chunk)))!.users--;
}

function entry<T>(map: Map<string, T>, name: string, fresh: T): T {
  const known = map.get(name);
  if (known) return known;
  map.set(name, fresh);
  return fresh;
}
