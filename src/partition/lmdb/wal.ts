/**
 * Write-ahead log: one record per commit group, checksummed and chained, in two preallocated files that take turns. What one file
 * holds is a segment; a checkpoint applies it to LMDB's file as a whole, and only then is the file written over.
 */

import { randomInt } from 'node:crypto';
import { closeSync, existsSync, fdatasync, fstatSync, openSync, writeSync, writev } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { writeFileDurably } from '../../base/durable-files.ts';
import { isDiskFull, PAGE_BYTES, readBeginning, writeAll } from './files.ts';
import { sealRecord } from './wal-record.ts';

/** How far a segment goes. */
export interface SegmentEnd {
  readonly number: number;
  /** Every record of the segment carries it, so that records can be looked for. It is random: no value holds it on purpose. */
  readonly salt: number;
  readonly position: number;
  /** Of the last record. */
  readonly checksum: number;
}

export const SLOTS = [0, 1] as const;
export const slotOf = (number: number): number => number % 2;
export const segmentFile = (location: string, slot: number): string => join(location, `wal-${slot}`);

/** The head has a block of its own: the disk writes no more than a block at once, and the head is never written again. */
export const RECORDS_AT = 4_096;
/** To sync a file that has its size already costs two thirds: it grows in advance, filled with zeros. */
const STEP = Buffer.alloc(512 << 10);
/** A segment's file is never shorter. */
export const SEGMENT_BYTES_MIN = STEP.length;
/** A disk that gets full leaves so much for commits that give space back. */
const AHEAD_BYTES = 256 << 10;
/** So much is copied into the kernel's cache at once; more is left to a thread. */
const SYNC_WRITE_BYTES_MAX = 128 << 10;

const MAGIC = Buffer.from('Holdfast WAL 1\n\0');
const HEAD_BYTES = 48;

/** What a segment's head says: its number and salt, and where the segment before it ended, if that was still needed. */
export interface SegmentHead extends Pick<SegmentEnd, 'number' | 'salt'> {
  readonly previous: { readonly position: number; readonly checksum: number };
  /** How many pages LMDB's file had at least when the segment began. It never gets shorter. */
  readonly dataPages: number;
}

function encodeHead({ number, salt, previous, dataPages }: SegmentHead): Buffer {
  const head = Buffer.alloc(RECORDS_AT);
  MAGIC.copy(head);
  head.writeUIntBE(number, 16, 6);
  head.writeUInt32BE(salt, 24);
  head.writeUIntBE(previous.position, 28, 6);
  head.writeUInt32BE(previous.checksum, 36);
  head.writeUInt32BE(dataPages, 40);
  head.writeUInt32BE(crc32(head.subarray(0, HEAD_BYTES - 4)), HEAD_BYTES - 4);
  return head;
}

/** undefined: it is not whole. */
export function decodeHead(bytes: Buffer): SegmentHead | undefined {
  if (bytes.length < RECORDS_AT) return undefined;
  const previous = { position: bytes.readUIntBE(28, 6), checksum: bytes.readUInt32BE(36) };
  const dataPages = bytes.readUInt32BE(40);
  const head = { number: bytes.readUIntBE(16, 6), salt: bytes.readUInt32BE(24), previous, dataPages };
  return encodeHead(head).equals(bytes.subarray(0, RECORDS_AT)) ? head : undefined;
}

/** How long LMDB's file was when the last segment began, as far as the log tells. */
export function dataBytesIn(location: string): number {
  const sizes = SLOTS.map((slot) => {
    const file = segmentFile(location, slot);
    return existsSync(file)
      ? (decodeHead(readBeginning(file, Buffer.alloc(RECORDS_AT)))?.dataPages ?? 0) * PAGE_BYTES
      : 0;
  });
  return Math.max(...sizes);
}

export class Wal {
  private readonly files: readonly number[];
  private end: SegmentEnd;
  /** Of this segment: a record without its head then means corruption, not a power cut. */
  private isHeadDurable = true;
  /** Of the file of this segment. */
  private size: number;
  /** How long LMDB's file is on disk, at least. */
  dataBytes: number;

  /** Goes on where the last segment ends; where there is none that is still needed, with a new one. */
  constructor(location: string, last: SegmentEnd | { readonly next: number }, dataBytes = 0) {
    this.dataBytes = dataBytes;
    // Both at first: a disk that is full later has room for some records already. A file that is shorter was cut off: it has its size before its name.
    this.files = SLOTS.map((slot) => {
      const file = segmentFile(location, slot);
      if (!existsSync(file)) writeFileDurably(file, STEP, { mode: 0o600 });
      return openSync(file, 'r+');
    });
    this.end = 'next' in last ? this.begin(last.next, { position: 0, checksum: 0 }) : last;
    this.size = fstatSync(this.file).size;
  }

  /** How much the segment holds. */
  get bytes(): number {
    return this.end.position - RECORDS_AT;
  }

  private get file(): number {
    return this.files[slotOf(this.end.number)]!;
  }

  /** One at a time. @param done the record is on disk; an error: see `isFull` */
  append(pieces: Buffer[], done: (error: Error | null) => void): void {
    const { number, salt, position, checksum: previous } = this.end;
    const { file } = this;
    const checksum = sealRecord(pieces, { segment: number, position, previous, salt });
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const sync = (): void =>
      fdatasync(file, (error) => {
        if (error) return done(error);
        this.end = { number, salt, position: position + length, checksum };
        this.size = Math.max(this.size, this.end.position);
        done(null);
      });
    const write = (): void => {
      try {
        this.growFor(length);
        if (length <= SYNC_WRITE_BYTES_MAX) {
          for (let at = position, i = 0; i < pieces.length; at += pieces[i++]!.length) writeAll(file, pieces[i]!, at);
          sync();
          return;
        }
      } catch (error) {
        setImmediate(done, error as Error);
        return;
      }
      writeAllAsync(file, pieces, position, (error) => (error ? done(error) : sync()));
    };
    if (this.isHeadDurable) write();
    else
      fdatasync(file, (error) => {
        if (error) return done(error);
        this.isHeadDurable = true;
        write();
      });
  }

  /** Goes on in the other file, which must not be needed any more; the segment that ends here. */
  rotate(): SegmentEnd {
    const ended = this.end;
    this.end = this.begin(ended.number + 1, ended);
    this.size = fstatSync(this.file).size;
    return ended;
  }

  close(): void {
    for (const file of this.files) closeSync(file);
  }

  /** Nothing is written after the head before it is on disk. */
  private begin(number: number, { position, checksum }: SegmentHead['previous']): SegmentEnd {
    const salt = randomInt(1, 2 ** 32);
    const dataPages = Math.floor(this.dataBytes / PAGE_BYTES);
    const head = encodeHead({ number, salt, previous: { position, checksum }, dataPages });
    writeAll(this.files[slotOf(number)]!, head, 0);
    this.isHeadDurable = false;
    return { number, salt, position: RECORDS_AT, checksum: salt };
  }

  /** Where the disk is full, the record may still fit. */
  private growFor(bytes: number): void {
    if (this.end.position + bytes + AHEAD_BYTES <= this.size) return;
    try {
      this.size += writeSync(this.file, STEP, 0, STEP.length, this.size);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
    }
  }
}

function writeAllAsync(file: number, pieces: Buffer[], position: number, done: (error: Error | null) => void): void {
  writev(file, pieces, position, (error, written) => {
    if (error) return done(error);
    let at = 0;
    for (const [i, piece] of pieces.entries()) {
      if (at + piece.length > written) {
        // Only so much was taken.
        const rest = [piece.subarray(written - at), ...pieces.slice(i + 1)];
        return writeAllAsync(file, rest, position + written, done);
      }
      at += piece.length;
    }
    done(null);
  });
}
