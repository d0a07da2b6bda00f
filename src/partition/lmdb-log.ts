/**
 * The log of commits. A segment begins with its base, the two pages by which LMDB finds one state of its file. Once that state is
 * on disk the segment is settled, and no older one is needed: after a crash the base of the newest settled segment is put
 * back, and what was logged since is applied again. Few files are used in turns, so that they keep their size.
 */
import { closeSync, constants, existsSync, fdatasyncSync, fstatSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { PAGE_BYTES } from './lmdb-files.ts';
import { HEAD_BYTES, type RecordWriter, recordAt } from './lmdb-record.ts';
import { isFull, syncFolder, writeAll } from './synced-files.ts';

/** LMDB's first two pages. */
export const BASE_BYTES = 2 * PAGE_BYTES;

export interface Segment {
  readonly number: number;
  /** Which of the files it is in. */
  readonly slot: number;
  readonly base: Buffer;
  readonly isSettled: boolean;
  readonly records: readonly Buffer[];
}

export interface Log {
  /** How much was logged since the base. */
  readonly bytes: number;
  /** On disk when this returns; when it throws, nothing of it will be read. */
  append(record: RecordWriter): void;
  /** Nothing came of what was appended last. */
  takeBack(): void;
  /** What follows is logged from this base on. */
  begin(base: Buffer): void;
  /** The base is on disk: older segments may go. */
  settle(): void;
  close(): void;
}

const SLOTS = [0, 1, 2];
/** What lies in different blocks is written apart, whatever the disk does. */
const BLOCK_BYTES = 4_096;
const SETTLED_AT = BLOCK_BYTES;
const BASE_AT = 2 * BLOCK_BYTES;
const RECORDS_AT = BASE_AT + BASE_BYTES;
/** To sync a file that has its size already costs two thirds: it grows in advance, filled with zeros. */
const STEP = Buffer.alloc(1 << 20);
/** A disk that gets full leaves so much for what gives space back. */
const AHEAD_BYTES = 256 << 10;
const NOTHING = Buffer.alloc(HEAD_BYTES);

const fileOf = (location: string, slot: number): string => join(location, `log-${slot}`);

/** Those that are whole, oldest first. */
export function segmentsIn(location: string): Segment[] {
  return SLOTS.flatMap((slot) => segmentIn(location, slot) ?? []).sort((a, b) => a.number - b.number);
}

function segmentIn(location: string, slot: number): Segment | undefined {
  const file = fileOf(location, slot);
  if (!existsSync(file)) return undefined;
  const bytes = readFileSync(file);
  if (bytes.length < RECORDS_AT) return undefined;
  const number = bytes.readUIntBE(0, 6);
  const base = bytes.subarray(BASE_AT, RECORDS_AT);
  if (!headOf(number, base).equals(bytes.subarray(0, BLOCK_BYTES))) return undefined;
  const isSettled = settledMark(number).equals(bytes.subarray(SETTLED_AT, BASE_AT));
  const records: Buffer[] = [];
  for (let position = RECORDS_AT; ; ) {
    const record = recordAt(bytes, { segment: number, position });
    if (!record) return { number, slot, base, isSettled, records };
    records.push(record);
    position += HEAD_BYTES + record.length;
  }
}

function headOf(number: number, base: Buffer): Buffer {
  const head = Buffer.alloc(BLOCK_BYTES);
  head.writeUIntBE(number, 0, 6);
  head.writeUInt32BE(crc32(base, crc32(`Holdfast log 1, segment ${number}`)), 6);
  return head;
}

function settledMark(number: number): Buffer {
  const mark = Buffer.alloc(BLOCK_BYTES);
  mark.writeUInt32BE(crc32(`segment ${number} is settled`), 0);
  return mark;
}

/** Goes on behind the newest of these segments. Where there is none, or the newest is not settled, `begin` comes first. */
export function openLog(location: string, segments: readonly Segment[]): Log {
  const settledAt = segments.findLastIndex(({ isSettled }) => isSettled);
  let needed = segments
    .slice(Math.max(0, settledAt))
    .filter(({ isSettled, records }) => isSettled || records.length > 0)
    .map(({ slot }) => slot);
  const newest = segments.at(-1);
  let number = newest?.number ?? 0;
  let file = newest && openSync(fileOf(location, newest.slot), 'r+');
  let size = file === undefined ? 0 : fstatSync(file).size;
  let position = newest ? endOf(newest) : RECORDS_AT;
  let last = position;

  /** Where the disk is full, what is to be written may still fit. */
  function growFor(bytes: number): void {
    if (position + bytes + AHEAD_BYTES <= size) return;
    try {
      size += writeSync(file!, STEP, 0, STEP.length, size);
    } catch (error) {
      if (!isFull(error)) throw error;
    }
  }

  return {
    get bytes() {
      return position - RECORDS_AT;
    },
    append(record) {
      const bytes = record.sealed({ segment: number, position });
      growFor(bytes.length);
      try {
        writeAll(file!, bytes, position);
        fdatasyncSync(file!);
      } catch (error) {
        writeAll(file!, NOTHING, position);
        throw error;
      }
      last = position;
      position += bytes.length;
      size = Math.max(size, position);
    },
    takeBack() {
      position = last;
      writeAll(file!, NOTHING, position);
      fdatasyncSync(file!);
    },
    begin(base) {
      const slot = SLOTS.find((each) => !needed.includes(each))!;
      const isNew = !existsSync(fileOf(location, slot));
      const next = openSync(fileOf(location, slot), constants.O_RDWR | constants.O_CREAT, 0o600);
      try {
        if (isNew) syncFolder(location);
        writeAll(next, Buffer.concat([headOf(number + 1, base), Buffer.alloc(BLOCK_BYTES), base]), 0);
      } catch (error) {
        closeSync(next);
        throw error;
      }
      if (file !== undefined) closeSync(file);
      file = next;
      number++;
      needed = [...needed, slot];
      size = fstatSync(file).size;
      position = RECORDS_AT;
      growFor(0);
    },
    settle() {
      writeAll(file!, settledMark(number), SETTLED_AT);
      fdatasyncSync(file!);
      needed = needed.slice(-1);
    },
    close: () => closeSync(file!),
  };
}

function endOf({ records }: Segment): number {
  return records.reduce((sum, { length }) => sum + HEAD_BYTES + length, RECORDS_AT);
}
