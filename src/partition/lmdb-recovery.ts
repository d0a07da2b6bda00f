/** Opens the rows in the state that their log tells, whatever a crash has left of LMDB's file. */
import { closeSync, fdatasyncSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { dropBallast } from './free-space.ts';
import { dataFile, pagesIn, pin } from './lmdb-base.ts';
import { DamagedRows, isNew, looksSound } from './lmdb-damage.ts';
import { type LmdbFiles, openFiles, setHighWater } from './lmdb-files.ts';
import { type Log, openLog, type Segment, segmentsIn } from './lmdb-log.ts';
import { changesIn } from './lmdb-record.ts';
import { isFull, writeAll } from './synced-files.ts';

const RECORDS_AT_ONCE = 1_000;

export function openRecovered(location: string): LmdbFiles {
  const segments = segmentsIn(location);
  const from = segments.findLastIndex(({ isSettled }) => isSettled);
  if (from >= 0) putBack(location, segments[from]!);
  if (!isNew(location) && !looksSound(location)) throw new DamagedRows();
  const files = openFiles(location);
  const records = from < 0 ? [] : segments.slice(from).flatMap((segment) => segment.records);
  const isSettled = from >= 0 && from === segments.length - 1;
  if (!isSettled || records.length > 0) applyAll(location, files, records, segments);
  return files;
}

/** What was committed since is applied again. So is what was never acknowledged, if it came into the log as a whole. */
function putBack(location: string, { base }: Segment): void {
  const data = openSync(dataFile(location), 'r+');
  try {
    if (base.equals(pagesIn(data))) return;
    // It tells of readers and of a last transaction that are gone.
    rmSync(join(location, 'lock.mdb'), { force: true });
    writeAll(data, base, 0);
  } finally {
    closeSync(data);
  }
}

/** A crash in here is none: until the new segment is settled, all begins again from the same base. */
function applyAll(location: string, files: LmdbFiles, records: readonly Buffer[], segments: readonly Segment[]): void {
  const log = openLog(location, segments);
  const data = openSync(dataFile(location), 'r+');
  const before = pin(files, data);
  for (let at = 0; at < records.length; at += RECORDS_AT_ONCE) {
    files.rows.transactionSync(() => {
      for (const record of records.slice(at, at + RECORDS_AT_ONCE)) apply(files, record);
    });
  }
  const after = pin(files, data);
  fdatasyncSync(data);
  // Two at first: a disk that is full later has room for both already.
  for (let missing = segments.length === 0 ? 2 : 1; missing > 0; missing--) begin(location, log, after.base);
  log.close();
  after.end();
  before.end();
  closeSync(data);
}

function begin(location: string, log: Log, base: Buffer): void {
  try {
    log.begin(base);
  } catch (error) {
    if (!isFull(error)) throw error;
    dropBallast(location);
    log.begin(base);
  }
  log.settle();
}

function apply({ rows, own }: LmdbFiles, record: Buffer): void {
  for (const change of changesIn(record)) {
    if (change.kind === 'put') rows.putSync(change.key, change.stored);
    else if (change.kind === 'remove') rows.removeSync(change.key);
    else setHighWater(own, change.until);
  }
}
