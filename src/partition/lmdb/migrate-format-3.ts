/**
 * Takes over what a server of data format 3 has left: there LMDB's file was synced after its log, and after a crash the two first pages
 * of a state that was synced, its base, are put back before the log is applied. One version later this file can go.
 */
import { existsSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { Unavailable } from '../partition.ts';
import { CorruptionError, hasValidHeader } from './corruption.ts';
import { SizeEstimate } from './disk-space.ts';
import { dataFile, openFiles, PAGE_BYTES, syncFolder, writeBeginning, writeMeta } from './files.ts';
import { replayRecords } from './wal-record.ts';

interface OldSegment {
  readonly number: number;
  readonly metaPages: Buffer;
  /** Its base is on disk. */
  readonly isCheckpointed: boolean;
  readonly records: readonly Buffer[];
}

const BLOCK_BYTES = 4_096;
const BASE_AT = 2 * BLOCK_BYTES;
const RECORDS_AT = BASE_AT + 2 * PAGE_BYTES;
const HEADER_BYTES = 8;

/** Throws CorruptionError. @param remove for tests */
export async function migrateLog(location: string, remove: (file: string) => void = rmSync): Promise<void> {
  const logs = [0, 1, 2]
    .map((slot) => join(location, `log-${slot}`))
    .filter((file) => existsSync(file))
    .map((file) => ({ file, segment: parseSegment(readFileSync(file)) }))
    .sort((a, b) => (a.segment?.number ?? 0) - (b.segment?.number ?? 0));
  const segments = logs.flatMap(({ segment }) => segment ?? []);
  const from = segments.findLastIndex(({ isCheckpointed }) => isCheckpointed);
  if (from >= 0) await applyFrom(location, segments.slice(from));
  // The oldest first: an older segment without the newer ones would put its outdated base over what was just applied.
  for (const { file } of logs) {
    remove(file);
    syncFolder(location);
  }
}

/** One transaction: LMDB uses no page of the base in it, so that all of this can begin again. */
async function applyFrom(location: string, segments: readonly OldSegment[]): Promise<void> {
  const records = segments.flatMap((segment) => segment.records);
  const { rows: left, until } = replayRecords(records);
  const growth = new SizeEstimate();
  for (const [key, stored] of left) growth.add(key.length, stored?.length);
  const { bavail, bsize } = statfsSync(location);
  if (bavail * bsize < growth.bytesMax())
    throw new Unavailable('The disk is too full for this start: free some space first.');
  restoreMetaPages(location, segments[0]!.metaPages);
  if (!hasValidHeader(location)) throw new CorruptionError('the file of LMDB is damaged');
  const { environment, rows, meta } = openFiles(location);
  rows.transactionSync(() => {
    for (const [key, stored] of left) {
      if (stored) rows.putSync(key, stored);
      else rows.removeSync(key);
    }
    if (until > 0n) writeMeta(meta, 'high-water', until);
  });
  await environment.close();
}

function restoreMetaPages(location: string, metaPages: Buffer): void {
  // It tells of readers and of a last transaction that are gone.
  rmSync(join(location, 'lock.mdb'), { force: true });
  writeBeginning(dataFile(location), metaPages);
}

function parseSegment(bytes: Buffer): OldSegment | undefined {
  if (bytes.length < RECORDS_AT) return undefined;
  const number = bytes.readUIntBE(0, 6);
  const base = bytes.subarray(BASE_AT, RECORDS_AT);
  if (bytes.readUInt32BE(6) !== crc32(base, crc32(`Holdfast log 1, segment ${number}`))) return undefined;
  const isSettled = bytes.readUInt32BE(BLOCK_BYTES) === crc32(`segment ${number} is settled`);
  const records: Buffer[] = [];
  for (let at = RECORDS_AT; ; ) {
    const record = decodeRecord(bytes, number, at);
    if (!record) return { number, metaPages: base, isCheckpointed: isSettled, records };
    records.push(record);
    at += HEADER_BYTES + record.length;
  }
}

function decodeRecord(bytes: Buffer, segment: number, position: number): Buffer | undefined {
  const from = position + HEADER_BYTES;
  if (from > bytes.length) return undefined;
  const length = bytes.readUInt32BE(position);
  if (length === 0 || from + length > bytes.length) return undefined;
  const changes = bytes.subarray(from, from + length);
  const checksum = crc32(changes, crc32(`${segment} ${position} ${length}`));
  return bytes.readUInt32BE(position + 4) === checksum ? changes : undefined;
}
