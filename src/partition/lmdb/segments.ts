/** Reads segments of the write-ahead log, and tells a torn end from corruption. */
import { closeSync, existsSync, fdatasyncSync, openSync, readFileSync, readSync } from 'node:fs';
import type { Key } from '../keys.ts';
import type { Instant } from '../partition.ts';
import { CorruptionError } from './corruption.ts';
import { writeAll } from './file-io.ts';
import { decodeVersion } from './files.ts';
import { Generation } from './overlay.ts';
import {
  decodeHead,
  RECORDS_AT,
  SEGMENT_BYTES_MIN,
  type SegmentEnd,
  type SegmentHead,
  SLOTS,
  segmentFile,
  slotOf,
} from './wal.ts';
import { decodeChanges, decodeRecord, findRecord } from './wal-record.ts';

export interface Segment {
  readonly end: SegmentEnd;
  /** Without their headers. */
  readonly records: readonly Buffer[];
}

/**
 * The segments that LMDB's file does not hold yet, oldest first. The log ends at the first record that is not whole: whoever wrote it was
 * not answered, for a record is on disk before the next one is written. So a whole record after that place means corruption.
 * A record that is damaged and the last of all cannot be told from one that was not written to its end.
 */
export function readSegmentsAfter(applied: number, location: string): Segment[] {
  const found = SLOTS.flatMap((slot) => {
    const file = segmentFile(location, slot);
    const bytes = existsSync(file) ? readFileSync(file) : undefined;
    // Both have their size before anything is applied, and never less.
    if (applied > 0 && (bytes?.length ?? 0) < SEGMENT_BYTES_MIN)
      throw new CorruptionError(`a file of the log is ${bytes ? 'cut off' : 'missing'}`);
    return (bytes && parseSegment(bytes, slot, applied)) ?? [];
  });
  found.sort((a, b) => a.end.number - b.end.number);
  for (const [i, { head, end }] of found.entries()) {
    if (end.number !== applied + 1 + i) throw new CorruptionError(`segment ${applied + 1 + i} of the log is missing`);
    const before = found[i - 1]?.end;
    const isWhole =
      !before || (before.position === head.previous.position && before.checksum === head.previous.checksum);
    if (!isWhole) throw new CorruptionError(`segment ${before.number} of the log is damaged at its end`);
  }
  return found;
}

function parseSegment(
  bytes: Buffer,
  slot: number,
  applied: number,
): (Segment & { readonly head: SegmentHead }) | undefined {
  const head = decodeHead(bytes);
  if (!head) {
    // The head is on disk with the first record. So without any record nobody misses this segment.
    const expected = slotOf(applied + 1) === slot ? applied + 1 : applied + 2;
    for (let at = RECORDS_AT; at < bytes.length; at++) {
      if (decodeRecord(bytes, expected, at)) throw new CorruptionError(`the head of segment ${expected} is damaged`);
    }
    return undefined;
  }
  const { number, salt } = head;
  if (number <= applied) return undefined;
  const segment = readRecords(bytes, number, salt);
  for (let at = segment.end.position; at >= 0; at = findRecord(bytes, salt, at + 1)) {
    if (decodeRecord(bytes, number, at))
      throw new CorruptionError(`segment ${number} of the log is damaged before ${at}`);
  }
  return { ...segment, head };
}

function readRecords(bytes: Buffer, number: number, salt: number): Segment {
  const records: Buffer[] = [];
  let position = RECORDS_AT;
  let checksum = salt;
  for (;;) {
    const record = decodeRecord(bytes, number, position);
    if (record?.previous !== checksum) return { records, end: { number, salt: salt, position, checksum } };
    records.push(record.changes);
    ({ end: position, checksum } = record);
  }
}

/** Kept for the next segment: otherwise some of them would wait for the garbage collector. */
let segmentBuffer = Buffer.alloc(0);

/** One that was written to its end; it is good until the next call. */
export function readSegment(location: string, end: SegmentEnd): Segment {
  if (segmentBuffer.length < end.position) segmentBuffer = Buffer.allocUnsafeSlow(end.position);
  const bytes = segmentBuffer.subarray(0, end.position);
  const file = openSync(segmentFile(location, slotOf(end.number)), 'r');
  try {
    for (let at = 0; at < bytes.length; ) {
      const read = readSync(file, bytes, at, bytes.length - at, at);
      if (read === 0) throw new CorruptionError('the log is cut off');
      at += read;
    }
  } finally {
    closeSync(file);
  }
  const segment = readRecords(bytes, end.number, end.salt);
  if (segment.end.checksum !== end.checksum) throw new CorruptionError(`segment ${end.number} of the log is damaged`);
  return segment;
}

/** What records leave of each key: version and value as they are stored, or undefined; and until when time is reserved. */
export function replayRecords(records: readonly Buffer[]): { rows: Map<Key, Buffer | undefined>; until: Instant } {
  const rows = new Map<Key, Buffer | undefined>();
  let until = 0n;
  for (const record of records) {
    for (const change of decodeChanges(record)) {
      if (change.kind === 'put') rows.set(change.key, change.stored);
      else if (change.kind === 'remove') rows.set(change.key, undefined);
      else until = change.until;
    }
  }
  return { rows, until };
}

/** Time goes on after all of these. */
export function latestInstant(instants: readonly Instant[]): Instant {
  return [...instants].sort((a, b) => Number(a - b)).at(-1) ?? 0n;
}

/** The segment as it was in memory when it was written, seen by every snapshot. */
export function loadGeneration({ records }: Segment): { generation: Generation; until: Instant } {
  const { rows, until } = replayRecords(records);
  const generation = new Generation();
  const entries = [...rows].map(([key, stored]) => {
    const entry = generation.write(key, 0, 0);
    if (stored) entry.set(decodeVersion(stored), stored.subarray(8));
    return entry;
  });
  generation.addToEstimate(entries);
  return { generation, until };
}

/**
 * Writes the beginning of a file again, as it is read. After a failed sync the kernel takes pages for written that are not on disk, and
 * shows them until the machine goes down: what a start has read must be on disk before it is relied on.
 */
export function rewriteAndSync(file: string, length: number): void {
  const descriptor = openSync(file, 'r+');
  try {
    const bytes = Buffer.alloc(length);
    const read = readSync(descriptor, bytes, 0, length, 0);
    writeAll(descriptor, bytes.subarray(0, read), 0);
    fdatasyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
