/**
 * Looks at every row of one committed state, and then at every byte. It only looks, and a server may work meanwhile: chunks
 * that it has let go of or moved since are looked up again.
 */
import type { ChunkChecker } from '../../content/chunk-check.ts';
import { type Chunk, type ChunkId, decodeCell, decodeChunk, textOf } from '../../content/rows.ts';
import { after, decodeKey, encodeKey, type Key, past } from '../../partition/keys.ts';
import type { Partition, Row, Snapshot } from '../../partition/partition.ts';
import { decodeHead } from '../blob/blob-record.ts';
import { decodeName } from '../common/names.ts';
import { nextSlice } from '../common/storage.ts';
import { count, nameOf, newCounts, uncount } from './check-refcounts.ts';
import { checkRow, type Tally, wrongCounters } from './check-rows.ts';

export interface CheckReport {
  readonly rows: number;
  readonly containers: number;
  readonly blobs: number;
  readonly bytes: number;
  /** What is wrong, in plain words. */
  readonly findings: readonly string[];
}

export interface CheckProgress {
  readonly what: 'counting rows' | 'checking rows' | 'reading bytes';
  readonly done: number;
  /** Undefined: not known yet. */
  readonly total: number | undefined;
}

type OnProgress = (progress: CheckProgress) => void;

const SLICE = { limit: 200, bytesMax: 1 << 20 };
const EVERYTHING = { from: '' as Key, to: past('' as Key) };
const PROGRESS_ROWS = 1_000;

export async function check(
  partition: Partition,
  chunks: ChunkChecker,
  onProgress: OnProgress = () => {},
): Promise<CheckReport> {
  const tally: Tally = { rows: 0, containers: 0, blobs: 0, bytes: 0, findings: [], strays: new Set() };
  const bytes = await partition.read((at) => checkRows(at, tally, onProgress));
  const damaged = await checkBytes(partition, chunks, bytes, tally, onProgress);
  if (damaged.size > 0) tally.findings.push(...(await partition.read((at) => blobsWith(at, damaged))));
  const { strays: _, ...report } = tally;
  return report;
}

/** How many bytes there are to be read. */
async function checkRows(at: Snapshot, tally: Tally, onProgress: OnProgress): Promise<number> {
  const counts = newCounts();
  let total = 0;
  for await (const row of allRows(at)) {
    quietly(() => count(counts, row));
    if (++total % PROGRESS_ROWS === 0) onProgress({ what: 'counting rows', done: total, total: undefined });
  }
  for (const range of counts.uncountedRows)
    for await (const row of allRows(at, range)) quietly(() => uncount(counts, row));
  for await (const row of allRows(at)) {
    tally.rows++;
    try {
      await checkRow(at, row, counts, tally);
    } catch (error) {
      tally.findings.push(`${describe(row.key)}: ${(error as Error).message}`);
    }
    if (tally.rows % PROGRESS_ROWS === 0) onProgress({ what: 'checking rows', done: tally.rows, total });
  }
  tally.findings.push(...wrongCounters(counts));
  for (const account of tally.strays) tally.findings.push(`account ${account}: it has rows and does not exist`);
  onProgress({ what: 'checking rows', done: tally.rows, total });
  return [...counts.live.values()].reduce((sum, { bytes }) => sum + bytes, 0);
}

/** A row that cannot be read is reported when the turn comes to the row itself. */
function quietly(look: () => void): void {
  try {
    look();
  } catch {}
}

/** No snapshot is open while bytes are read: it would keep the server's rows from being used again. */
async function checkBytes(
  partition: Partition,
  chunks: ChunkChecker,
  total: number,
  { findings }: Tally,
  onProgress: OnProgress,
): Promise<Set<string>> {
  const damaged = new Set<string>();
  let done = 0;
  for await (const { account, id, chunk } of allChunks(partition)) {
    const fault = await chunks.check(account, id, chunk);
    if (fault) findings.push(fault.message);
    if (fault && !fault.isReadable) damaged.add(nameOf(account, textOf(id)));
    done += chunk.place.length;
    // More may have come meanwhile.
    onProgress({ what: 'reading bytes', done, total: Math.max(total, done) });
  }
  onProgress({ what: 'reading bytes', done, total: done });
  return damaged;
}

async function* allChunks(partition: Partition): AsyncIterable<{ account: bigint; id: ChunkId; chunk: Chunk }> {
  for (let from = encodeKey([0n]); ; ) {
    const [first] = await partition.read((at) => at.scan({ from, to: EVERYTHING.to }, { limit: 1 }));
    const account = first && accountIn(first.key);
    if (account === undefined) return;
    const range = { from: encodeKey([account, 'k']), to: past(encodeKey([account, 'k'])) };
    for (let next = range.from; ; ) {
      const rows = await partition.read((at) => at.scan({ from: next, to: range.to }, SLICE));
      const last = rows.at(-1);
      if (!last) break;
      for (const row of rows) {
        try {
          const [, , epoch, number] = decodeKey(row.key) as [bigint, string, bigint, bigint];
          yield { account, id: { epoch, number }, chunk: decodeChunk(row) };
        } catch {
          // The look at the rows has reported it.
        }
      }
      next = after(last.key);
    }
    from = past(encodeKey([account]));
  }
}

function accountIn(key: Key): bigint | undefined {
  try {
    const [account] = decodeKey(key);
    return typeof account === 'bigint' ? account : undefined;
  } catch {
    return undefined;
  }
}

/** Whom it concerns. */
async function blobsWith(at: Snapshot, damaged: ReadonlySet<string>): Promise<string[]> {
  const contents = new Set<string>();
  const containers = new Map<string, string>();
  const blobs: string[] = [];
  for (const pass of ['m', 'b']) {
    for await (const row of allRows(at)) {
      try {
        const [account, type, ...rest] = decodeKey(row.key);
        if (type === 'n' && rest[0] === 'blob') containers.set(nameOf(account, decodeName(row)), rest[1] as string);
        if (type !== pass) continue;
        if (type === 'm') {
          const names = decodeCell(row).flatMap(({ parts }) =>
            parts.map((part) => nameOf(account, textOf(part.chunk))),
          );
          if (names.some((name) => damaged.has(name))) contents.add(nameOf(account, `${rest[0]}-${rest[1]}`));
        } else if (contents.has(nameOf(account, decodeHead(row).contentId))) {
          const container = containers.get(nameOf(account, rest[0]));
          if (container !== undefined) blobs.push(`blob ${container}/${rest[2]}: some of its bytes are damaged`);
        }
      } catch {
        // The look at the rows has reported it.
      }
    }
  }
  return blobs;
}

async function* allRows(at: Snapshot, range = EVERYTHING): AsyncIterable<Row> {
  for (let { from } = range; ; ) {
    const rows = await at.scan({ from, to: range.to }, SLICE);
    yield* rows;
    const last = rows.at(-1);
    if (!last) return;
    from = after(last.key);
    await nextSlice();
  }
}

function describe(key: Key): string {
  try {
    return `row ${JSON.stringify(decodeKey(key).map((part) => (typeof part === 'bigint' ? part.toString() : part)))}`;
  } catch {
    return `row ${Buffer.from(key, 'latin1').toString('hex')}`;
  }
}
