/**
 * Migration from data format 3, where LMDB's file was synced later than its log: the meta pages of the last synced state, which the log
 * holds, are restored, and the log is applied. The next version can do without this file.
 */
import { existsSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { syncFolderSync } from '../../base/durable-files.ts';
import { Unavailable } from '../partition.ts';
import { applyRows } from './checkpoint.ts';
import { CorruptionError, hasValidHeader } from './corruption.ts';
import { SizeEstimate } from './disk-space.ts';
import { dataFile, openFiles, PAGE_BYTES, writeBeginning } from './files.ts';
import { replayRecords } from './wal-record.ts';

interface OldSegment {
  readonly number: number;
  readonly metaPages: Buffer;
  /** The state of the meta pages is durable. */
  readonly isCheckpointed: boolean;
  readonly records: readonly Buffer[];
}

const BLOCK_BYTES = 4_096;
const META_PAGES_AT = 2 * BLOCK_BYTES;
const RECORDS_AT = META_PAGES_AT + 2 * PAGE_BYTES;
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
  // Oldest first: an older segment without the newer ones would restore outdated meta pages over the rows just applied.
  for (const { file } of logs) {
    remove(file);
    syncFolderSync(location);
  }
}

/** Can be repeated after a crash: one transaction of LMDB overwrites no page of the restored state. */
async function applyFrom(location: string, segments: readonly OldSegment[]): Promise<void> {
  const logged = replayRecords(segments.flatMap((segment) => segment.records));
  const sizeEstimate = new SizeEstimate();
  for (const [key, stored] of logged.rows) sizeEstimate.add(key.length, stored?.length);
  const { bavail, bsize } = statfsSync(location);
  if (bavail * bsize < sizeEstimate.bytesMax())
    throw new Unavailable('The disk is too full for this start: free some space first.');
  // The lock file names readers and a last transaction that are gone.
  rmSync(join(location, 'lock.mdb'), { force: true });
  writeBeginning(dataFile(location), segments[0]!.metaPages);
  if (!hasValidHeader(location)) throw new CorruptionError('the file of LMDB is damaged');
  const files = openFiles(location);
  // In one transaction: a second one might overwrite pages of the restored state.
  applyRows(files, logged);
  await files.environment.close();
}

function parseSegment(bytes: Buffer): OldSegment | undefined {
  if (bytes.length < RECORDS_AT) return undefined;
  const number = bytes.readUIntBE(0, 6);
  const metaPages = bytes.subarray(META_PAGES_AT, RECORDS_AT);
  if (bytes.readUInt32BE(6) !== crc32(metaPages, crc32(`Holdfast log 1, segment ${number}`))) return undefined;
  const isCheckpointed = bytes.readUInt32BE(BLOCK_BYTES) === crc32(`segment ${number} is settled`);
  const records: Buffer[] = [];
  for (let at = RECORDS_AT; ; ) {
    const record = decodeRecord(bytes, number, at);
    if (!record) return { number, metaPages, isCheckpointed, records };
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
