/**
 * Write-ahead log: one record per commit group, checksummed and chained, in two preallocated files that take turns. The content of one
 * file is a segment; the file is overwritten only after a checkpoint has applied the whole segment to LMDB's file.
 */
import { randomInt } from 'node:crypto';
import { closeSync, existsSync, fdatasync, fdatasyncSync, fstatSync, openSync, writeSync, writev } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { writeFileDurably } from '../../base/durable-files.ts';
import { isDiskFull, PAGE_BYTES, readBeginning, writeAll } from './files.ts';
import { type SegmentEnd, sealRecord } from './wal-record.ts';

export const SLOTS = [0, 1] as const;
export const slotOf = (number: number): number => number % 2;
export const segmentFile = (location: string, slot: number): string => join(location, `wal-${slot}`);

/** The head has a block of its own, which no later write touches: a torn write of a record cannot damage the head. */
export const RECORDS_AT = 4_096;
/** Files grow ahead of their use, filled with zeros: the sync of a file whose size stays the same costs a third less. */
const STEP = Buffer.alloc(512 << 10);
/** A file has this size before it has its name, so a shorter one was cut off. */
export const SEGMENT_BYTES_MIN = STEP.length;
/** On a disk that gets full, this much of the file remains for commits that free space. */
const AHEAD_BYTES = 256 << 10;
/** Up to this length a copy into the kernel's cache costs less than a thread. */
const SYNC_WRITE_BYTES_MAX = 128 << 10;
/** A longer sync should not have blocked the event loop: the next ones are in the thread pool, so many for each of its milliseconds. */
const SHORT_SYNC_MILLISECONDS = 0.5;
const POOLED_SYNCS_PER_MILLISECOND = 20;

const MAGIC = Buffer.from('Holdfast WAL 1\n\0');
const HEAD_BYTES = 48;

export interface SegmentHead extends Pick<SegmentEnd, 'number' | 'salt'> {
  /** The end of the segment before; zeros if that was checkpointed when this one began. */
  readonly previous: Pick<SegmentEnd, 'position' | 'checksum'>;
  /** A lower bound of the pages in LMDB's file, which never shrinks. */
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

/** undefined: the head is incomplete or damaged. */
export function decodeHead(bytes: Buffer): SegmentHead | undefined {
  if (bytes.length < RECORDS_AT) return undefined;
  const previous = { position: bytes.readUIntBE(28, 6), checksum: bytes.readUInt32BE(36) };
  const dataPages = bytes.readUInt32BE(40);
  const head = { number: bytes.readUIntBE(16, 6), salt: bytes.readUInt32BE(24), previous, dataPages };
  return encodeHead(head).equals(bytes.subarray(0, RECORDS_AT)) ? head : undefined;
}

/** A lower bound of the length of LMDB's file, from the heads of the segments. */
export function dataBytesMin(location: string): number {
  const files = SLOTS.map((slot) => segmentFile(location, slot)).filter((file) => existsSync(file));
  const heads = files.map((file) => decodeHead(readBeginning(file, Buffer.alloc(RECORDS_AT))));
  return Math.max(0, ...heads.map((head) => (head?.dataPages ?? 0) * PAGE_BYTES));
}

export class Wal {
  private readonly files: readonly number[];
  private readonly blockingSyncs = new BlockingSyncs();
  /** The end of the durable records: moved by a sync alone. */
  private end: SegmentEnd;
  /** No record is written before its segment's head is durable: so a record without a head is corruption, never a power cut. */
  private isHeadDurable = true;
  /** The size of this segment's file. */
  private size: number;
  /** A lower bound of the durable length of LMDB's file; the next head carries it. */
  dataBytes: number;

  /** Continues at the end of the last segment, or with a new one if all are checkpointed. */
  constructor(location: string, last: SegmentEnd | { readonly next: number }, dataBytes = 0) {
    this.dataBytes = dataBytes;
    // Both files are preallocated, so that a disk that is full later has room for some records.
    this.files = SLOTS.map((slot) => {
      const file = segmentFile(location, slot);
      if (!existsSync(file)) writeFileDurably(file, STEP, { mode: 0o600 });
      return openSync(file, 'r+');
    });
    this.end = 'next' in last ? this.begin(last.next, { position: 0, checksum: 0 }) : last;
    this.size = fstatSync(this.file).size;
  }

  /** The length of this segment's records. */
  get bytes(): number {
    return this.end.position - RECORDS_AT;
  }

  private get file(): number {
    return this.files[slotOf(this.end.number)]!;
  }

  /**
   * One call at a time.
   * @param isAlone the event loop serves one writer: the sync may block it
   * @param done the record is durable; after an error, see `isDiskFull`
   */
  append(pieces: Buffer[], isAlone: boolean, done: (error: Error | null) => void): void {
    const { file } = this;
    const { number, salt, position } = this.end;
    const checksum = sealRecord(pieces, this.end);
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const synced = (error: Error | null): void => {
      if (!error) {
        this.end = { number, salt, position: position + length, checksum };
        this.size = Math.max(this.size, this.end.position);
      }
      done(error);
    };
    const sync = (): void => {
      if (isAlone && this.blockingSyncs.areShort()) process.nextTick(synced, this.blockingSyncs.sync(file));
      else fdatasync(file, synced);
    };
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

  /** Ends this segment, and begins the next in the other file, whose segment must be checkpointed. */
  rotate(): SegmentEnd {
    const ended = this.end;
    this.end = this.begin(ended.number + 1, ended);
    this.size = fstatSync(this.file).size;
    return ended;
  }

  close(): void {
    for (const file of this.files) closeSync(file);
  }

  private begin(number: number, { position, checksum }: SegmentHead['previous']): SegmentEnd {
    const salt = randomInt(1, 2 ** 32);
    const dataPages = Math.floor(this.dataBytes / PAGE_BYTES);
    const head = encodeHead({ number, salt, previous: { position, checksum }, dataPages });
    writeAll(this.files[slotOf(number)]!, head, 0);
    this.isHeadDurable = false;
    return { number, salt, position: RECORDS_AT, checksum: salt };
  }

  /** On a full disk the record may still fit into the file as it is. */
  private growFor(bytes: number): void {
    if (this.end.position + bytes + AHEAD_BYTES <= this.size) return;
    try {
      this.size += writeSync(this.file, STEP, 0, STEP.length, this.size);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
    }
  }
}

/**
 * Syncs on the main thread: without two thread switches, the write of a lone client takes four fifths of the time. Nothing else runs meanwhile, so
 * they are used only as long as they are short.
 */
class BlockingSyncs {
  private pooledLeft = 0;

  areShort(): boolean {
    if (this.pooledLeft > 0) this.pooledLeft--;
    return this.pooledLeft === 0;
  }

  sync(file: number): Error | null {
    const started = performance.now();
    try {
      fdatasyncSync(file);
    } catch (error) {
      return error as Error;
    }
    const milliseconds = performance.now() - started;
    if (milliseconds > SHORT_SYNC_MILLISECONDS)
      this.pooledLeft = Math.ceil(milliseconds * POOLED_SYNCS_PER_MILLISECOND);
    return null;
  }
}

function writeAllAsync(file: number, pieces: Buffer[], position: number, done: (error: Error | null) => void): void {
  writev(file, pieces, position, (error, written) => {
    if (error) return done(error);
    let at = 0;
    for (const [i, piece] of pieces.entries()) {
      if (at + piece.length > written) {
        // A short write.
        const rest = [piece.subarray(written - at), ...pieces.slice(i + 1)];
        return writeAllAsync(file, rest, position + written, done);
      }
      at += piece.length;
    }
    done(null);
  });
}
