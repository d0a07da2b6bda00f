/** Reading segments of the write-ahead log: a torn end is distinguished from corruption. */
import { existsSync, readFileSync } from 'node:fs';
import type { Instant } from '../partition.ts';
import { CorruptionError } from './corruption.ts';
import { decodeVersion, readBeginning, writeBeginning } from './files.ts';
import { Generation } from './overlay.ts';
import { decodeHead, RECORDS_AT, SEGMENT_BYTES_MIN, type SegmentHead, SLOTS, segmentFile, slotOf } from './wal.ts';
import { decodeRecord, findRecord, replayRecords, type SegmentEnd } from './wal-record.ts';

export interface Segment {
  readonly end: SegmentEnd;
  /** Without headers. */
  readonly records: readonly Buffer[];
}

/**
 * The segments that are not checkpointed, oldest first. The log ends at the first incomplete record, whose commits were not acknowledged: a
 * record is durable before the next one is written. So a complete record after an incomplete one means corruption. Damage to the very last
 * record cannot be distinguished from a torn write.
 */
export function readSegmentsAfter(applied: number, location: string): Segment[] {
  const found = SLOTS.flatMap((slot) => {
    const file = segmentFile(location, slot);
    const bytes = existsSync(file) ? readFileSync(file) : undefined;
    if (applied > 0 && !bytes) throw new CorruptionError('a file of the log is missing');
    if (bytes && bytes.length < SEGMENT_BYTES_MIN) throw new CorruptionError('a file of the log is cut off');
    return (bytes && parseSegment(bytes, slot, applied)) ?? [];
  });
  found.sort((a, b) => a.end.number - b.end.number);
  for (const [i, { head, end }] of found.entries()) {
    if (end.number !== applied + 1 + i) throw new CorruptionError(`segment ${applied + 1 + i} of the log is missing`);
    const before = found[i - 1]?.end;
    if (before && (before.position !== head.previous.position || before.checksum !== head.previous.checksum))
      throw new CorruptionError(`segment ${before.number} of the log is damaged at its end`);
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
    // The head is durable before the first record is written: without a record, the segment had none.
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
    if (record?.previous !== checksum) return { records, end: { number, salt, position, checksum } };
    records.push(record.changes);
    ({ end: position, checksum } = record);
  }
}

/** Reused for each segment: buffers of megabytes would pile up until the garbage collector runs. */
let segmentBuffer = Buffer.alloc(0);

/** A segment that has ended; valid until the next call. */
export function readSegment(location: string, end: SegmentEnd): Segment {
  if (segmentBuffer.length < end.position) segmentBuffer = Buffer.allocUnsafeSlow(end.position);
  const bytes = readBeginning(segmentFile(location, slotOf(end.number)), segmentBuffer.subarray(0, end.position));
  const segment = readRecords(bytes, end.number, end.salt);
  if (segment.end.checksum !== end.checksum) throw new CorruptionError(`segment ${end.number} of the log is damaged`);
  return segment;
}

/** The segment as a generation that every snapshot sees. */
export function loadGeneration({ records }: Segment): { generation: Generation; until: Instant } {
  const { rows, until } = replayRecords(records);
  const generation = new Generation();
  generation.beginGroup(0, 0);
  for (const [key, stored] of rows) generation.write(key, stored ? decodeVersion(stored) : 0n, stored?.subarray(8));
  generation.endGroup();
  return { generation, until };
}

/**
 * Writes the beginning of a file again, as it was read. After a failed sync the kernel marks pages as clean that are not on disk, and
 * shows them until the machine goes down: a start must not rely on them before a sync of its own.
 */
export function rewriteAndSync(file: string, length: number): void {
  writeBeginning(file, readBeginning(file, Buffer.alloc(length)));
}
