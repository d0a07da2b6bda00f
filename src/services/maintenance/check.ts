/**
 * Consistency check (fsck): recounts references over one snapshot, then verifies the checksum of every chunk. It only reads, and
 * a server may be running: chunks that the server has released or moved since the snapshot are looked up again.
 */
import { nextSlice } from '../../base/time-slices.ts';
import type { ChunkChecker } from '../../content/chunk-check.ts';
import { chunksIn } from '../../content/ranges/map-page.ts';
import { decodeMapPage } from '../../content/ranges/map-page-codec.ts';
import { type Chunk, type ChunkId, decodeChunk, decodeManifestPage, formatId } from '../../content/rows.ts';
import {
  bytePrefixEnd,
  decodeKey,
  encodeKey,
  type Key,
  keyAfter,
  prefixEnd,
  type Range,
  volatileKey,
} from '../../partition/keys.ts';
import type { Partition, Row, Snapshot } from '../../partition/partition.ts';
import { decodeBlobRecord } from '../blob/blob-record.ts';
import { decodeName } from '../common/names.ts';
import type { AccountId } from '../common/storage.ts';
import { damagedFilePath } from './check-files.ts';
import { countRow, newReferenceCounts, qualifiedId, type ReferenceCounts, uncountRow } from './check-refcounts.ts';
import { type CheckTotals, checkRow, counterMismatches } from './check-rows.ts';

export interface CheckReport {
  readonly rows: number;
  readonly containers: number;
  readonly blobs: number;
  readonly bytes: number;
  readonly queues: number;
  readonly messages: number;
  readonly tables: number;
  readonly entities: number;
  readonly shares: number;
  readonly files: number;
  /** The faults, in plain words. */
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
const VOLATILE = volatileKey([]);
/** Volatile rows are on no disk. No row has a key after theirs, unless the file is damaged. */
const STORED = { from: '' as Key, to: VOLATILE };
const UNREADABLE = { from: bytePrefixEnd(VOLATILE)!, to: prefixEnd('' as Key) };
const PROGRESS_ROWS = 1_000;

export async function check(
  partition: Partition,
  chunks: ChunkChecker,
  onProgress: OnProgress = () => {},
): Promise<CheckReport> {
  const totals: CheckTotals = {
    ...{
      rows: 0,
      containers: 0,
      blobs: 0,
      bytes: 0,
      queues: 0,
      messages: 0,
      tables: 0,
      entities: 0,
      shares: 0,
      files: 0,
    },
    findings: [],
    unknownAccounts: new Set(),
  };
  const counts = newReferenceCounts();
  const { accounts } = counts;
  const bytes = await partition.read((at) => checkRows(at, counts, totals, onProgress));
  const damaged = await checkBytes(partition, chunks, bytes, accounts, totals, onProgress);
  if (damaged.size > 0)
    totals.findings.push(...(await partition.read((at) => findDamagedBlobs(at, damaged, accounts))));
  const { unknownAccounts: _, ...report } = totals;
  return report;
}

/** Returns the number of bytes to be read. */
async function checkRows(
  at: Snapshot,
  counts: ReferenceCounts,
  totals: CheckTotals,
  onProgress: OnProgress,
): Promise<number> {
  let total = 0;
  for await (const row of allRows(at)) {
    ignoreErrors(() => countRow(counts, row));
    if (++total % PROGRESS_ROWS === 0) onProgress({ what: 'counting rows', done: total, total: undefined });
  }
  for (const range of counts.uncountedRows)
    for await (const row of rowsIn(at, range)) ignoreErrors(() => uncountRow(counts, row));
  for await (const row of allRows(at)) {
    totals.rows++;
    try {
      await checkRow(at, row, counts, totals);
    } catch (error) {
      totals.findings.push(`${describeKey(row.key, counts.accounts)}: ${(error as Error).message}`);
    }
    if (totals.rows % PROGRESS_ROWS === 0) onProgress({ what: 'checking rows', done: totals.rows, total });
  }
  totals.findings.push(...counterMismatches(counts));
  for (const account of totals.unknownAccounts)
    totals.findings.push(`account ${account}: it has rows and does not exist`);
  onProgress({ what: 'checking rows', done: totals.rows, total });
  return [...counts.live.values()].reduce((sum, { bytes }) => sum + bytes, 0);
}

/** A row that cannot be decoded is reported when the row itself is checked. */
function ignoreErrors(fn: () => void): void {
  try {
    fn();
  } catch {}
}

/** No snapshot is open while bytes are read: it would keep the store from reusing the space of old rows. */
async function checkBytes(
  partition: Partition,
  chunks: ChunkChecker,
  total: number,
  accounts: ReferenceCounts['accounts'],
  { findings }: CheckTotals,
  onProgress: OnProgress,
): Promise<Set<string>> {
  const damaged = new Set<string>();
  let done = 0;
  for await (const { account, id, chunk } of allChunks(partition)) {
    const fault = await chunks.check(account, id, chunk);
    if (fault) findings.push(withAccountName(fault.message, accounts));
    if (fault && !fault.isReadable) damaged.add(qualifiedId(account, formatId(id)));
    done += chunk.place.length;
    // A running server may have added bytes since.
    onProgress({ what: 'reading bytes', done, total: Math.max(total, done) });
  }
  onProgress({ what: 'reading bytes', done, total: done });
  return damaged;
}

/** The extents know accounts by their ids only. */
function withAccountName(message: string, accounts: ReferenceCounts['accounts']): string {
  return message.replace(/(?<= of account )\d+/, (id) => accounts.get(BigInt(id)) ?? id);
}

async function* allChunks(partition: Partition): AsyncIterable<{ account: bigint; id: ChunkId; chunk: Chunk }> {
  for (let from = encodeKey([0n]); ; ) {
    const [first] = await partition.read((at) => at.scan({ from, to: STORED.to }, { limit: 1 }));
    const account = first && parseAccount(first.key);
    if (account === undefined) return;
    const range = { from: encodeKey([account, 'k']), to: prefixEnd(encodeKey([account, 'k'])) };
    for (let next = range.from; ; ) {
      const rows = await partition.read((at) => at.scan({ from: next, to: range.to }, SLICE));
      const last = rows.at(-1);
      if (!last) break;
      for (const row of rows) {
        try {
          const [, , epoch, number] = decodeKey(row.key) as [bigint, string, bigint, bigint];
          yield { account, id: { epoch, number }, chunk: decodeChunk(row) };
        } catch {
          // Reported by checkRows.
        }
      }
      next = keyAfter(last.key);
    }
    from = prefixEnd(encodeKey([account]));
  }
}

function parseAccount(key: Key): bigint | undefined {
  try {
    const [account] = decodeKey(key);
    return typeof account === 'bigint' ? account : undefined;
  } catch {
    return undefined;
  }
}

/** The blobs and files whose contents reference a damaged chunk. */
async function findDamagedBlobs(
  at: Snapshot,
  damaged: ReadonlySet<string>,
  accounts: ReferenceCounts['accounts'],
): Promise<string[]> {
  const contents = new Set<string>();
  const containers = new Map<string, string>();
  const blobs: string[] = [];
  for (const pass of ['mMo', 'bj']) {
    for await (const row of allRows(at)) {
      try {
        const [account, type, ...rest] = decodeKey(row.key);
        if (type === 'n' && (rest[0] === 'blob' || rest[0] === 'file'))
          containers.set(qualifiedId(account, decodeName(row)), rest[1] as string);
        if (!pass.includes(type as string)) continue;
        if (type === 'j') {
          const share = containers.get(qualifiedId(account, rest[0]));
          const path = share && (await damagedFilePath(at, row, (id) => contents.has(qualifiedId(account, id))));
          if (path !== undefined) {
            const name = `${accounts.get(account as AccountId)}/${share}/${path}`;
            blobs.push(`file ${name}: some of its bytes are damaged`);
          }
        } else if (type !== 'b') {
          const names = namedChunks(type, row).map((chunk) => qualifiedId(account, formatId(chunk)));
          if (names.some((name) => damaged.has(name))) contents.add(qualifiedId(account, `${rest[0]}-${rest[1]}`));
        } else if (contents.has(qualifiedId(account, decodeBlobRecord(row).contentId))) {
          const container = containers.get(qualifiedId(account, rest[0]));
          if (container !== undefined) {
            const name = `${accounts.get(account as AccountId)}/${container}/${rest[2]}`;
            blobs.push(`blob ${name}: some of its bytes are damaged`);
          }
        }
      } catch {
        // Reported by checkRows.
      }
    }
  }
  return blobs;
}

function namedChunks(type: unknown, row: Row): ChunkId[] {
  if (type !== 'm') return chunksIn(decodeMapPage(row).segments);
  return decodeManifestPage(row).flatMap(({ chunkRefs }) => chunkRefs.map(({ chunk }) => chunk));
}

async function* allRows(at: Snapshot): AsyncIterable<Row> {
  yield* rowsIn(at, STORED);
  yield* rowsIn(at, UNREADABLE);
}

async function* rowsIn(at: Snapshot, range: Range): AsyncIterable<Row> {
  for (let { from } = range; ; ) {
    const rows = await at.scan({ from, to: range.to }, SLICE);
    yield* rows;
    const last = rows.at(-1);
    if (!last) return;
    from = keyAfter(last.key);
    await nextSlice();
  }
}

/** An account is named instead of its id, which users never see. */
function describeKey(key: Key, accounts: ReferenceCounts['accounts']): string {
  try {
    const [first, ...rest] = decodeKey(key);
    const account = typeof first === 'bigint' ? (accounts.get(first) ?? first) : first;
    return `row ${JSON.stringify([account, ...rest].map((part) => (typeof part === 'bigint' ? part.toString() : part)))}`;
  } catch {
    return `row ${Buffer.from(key, 'latin1').toString('hex')}`;
  }
}
