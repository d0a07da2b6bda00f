import {
  closeSync,
  cpSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { randomOf } from '../../../test/support/random.mjs';
import { bytes, key, put } from '../conformance/harness.ts';
import type { Key } from '../keys.ts';
import { openPartition } from '../transact.ts';
import { CorruptionError } from './corruption.ts';
import { openLmdb } from './engine.ts';
import { Generation } from './overlay.ts';
import { readSegmentsAfter } from './segments.ts';
import { RECORDS_AT, segmentFile, Wal } from './wal.ts';
import { encodeRecord, HEADER_BYTES, replayRecords, type SegmentEnd } from './wal-record.ts';

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-wal-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function recordOf(number: number, valueBytes = 90 * number): Buffer[] {
  const generation = new Generation();
  generation.write(`key ${number}` as Key, BigInt(number), Buffer.alloc(valueBytes, number));
  return encodeRecord(generation.written, undefined);
}

async function append(wal: Wal, ...records: Buffer[][]): Promise<void> {
  for (const pieces of records) {
    await new Promise<void>((resolve, reject) =>
      wal.append(pieces, false, (error) => (error ? reject(error) : resolve())),
    );
  }
}

/** The numbers of the rows in each segment that is left. */
function found(folder: string, applied = 0): number[][] {
  return readSegmentsAfter(applied, folder).map(({ records }) =>
    [...replayRecords(records).rows.keys()].map((each) => Number(each.slice(4))),
  );
}

/** A frozen segment with five rows and an active one with four; where each record of theirs begins. */
async function twoSegments(): Promise<{ folder: string; starts: number[][]; ends: SegmentEnd[] }> {
  const folder = newFolder();
  const wal = new Wal(folder, { next: 1 });
  const starts: number[][] = [[], []];
  const ends: SegmentEnd[] = [];
  for (const [segment, rows] of [
    [1, 2, 3, 4, 5],
    [6, 7, 8, 9],
  ].entries()) {
    for (const row of rows) {
      starts[segment]!.push(RECORDS_AT + wal.bytes);
      await append(wal, recordOf(row));
    }
    if (segment === 0) ends.push(wal.rotate());
    else starts[segment]!.push(RECORDS_AT + wal.bytes);
  }
  wal.close();
  starts[0]!.push(ends[0]!.position);
  return { folder, starts, ends };
}

describe('A record of the log', () => {
  it('is decoded to every change as it was, in order, large values included', () => {
    const generation = new Generation();
    const values = ['any bytes \x00\xff', undefined, 'x'.repeat(3 << 20), 'short', 'y'.repeat(1 << 20)];
    for (const [i, value] of values.entries()) {
      const bytes = value === undefined ? undefined : Buffer.from(value, 'latin1');
      generation.write(`\x00\xfe ${i}` as Key, 2n ** 63n + BigInt(i), bytes);
    }
    const { written: entries } = generation;
    const record = Buffer.concat(encodeRecord(entries, 77n)).subarray(HEADER_BYTES);
    const { rows, until } = replayRecords([record]);
    expect([...rows.keys()]).toEqual(values.map((_, i) => `\x00\xfe ${i}`));
    for (const [i, value] of values.entries()) {
      const stored = rows.get(`\x00\xfe ${i}` as Key);
      expect(stored?.readBigUInt64BE()).toBe(value === undefined ? undefined : 2n ** 63n + BigInt(i));
      expect(stored?.toString('latin1', 8) === value).toBe(true);
      // The overlay reads from the record what it has put there.
      expect(entries[i]!.value?.toString('latin1') === value).toBe(true);
      expect(entries[i]!.version).toBe(value === undefined ? undefined : 2n ** 63n + BigInt(i));
    }
    expect(until).toBe(77n);
  });
});

describe('The log', () => {
  it('has what was appended, in segments that take turns, without those that were applied', async () => {
    const { folder, ends } = await twoSegments();
    expect(found(folder)).toEqual([
      [1, 2, 3, 4, 5],
      [6, 7, 8, 9],
    ]);
    expect(found(folder, 1)).toEqual([[6, 7, 8, 9]]);
    expect(found(folder, 2)).toEqual([]);
    const wal = new Wal(folder, readSegmentsAfter(0, folder)[1]!.end);
    await append(wal, recordOf(10, 2 << 20));
    expect(wal.rotate().number).toBe(ends[0]!.number + 1);
    await append(wal, recordOf(11));
    wal.close();
    expect(found(folder, 1)).toEqual([[6, 7, 8, 9, 10], [11]]);
    expect(() => found(folder)).toThrow(CorruptionError);
  });

  it('ends before a torn record, at whichever byte it was torn, and continues there', async () => {
    const { folder, starts } = await twoSegments();
    const [start, end] = starts[1]!.slice(-2) as [number, number];
    const file = segmentFile(folder, 0);
    const whole = readFileSync(file);
    for (let cut = start; cut < end; cut += 1 + (cut % 5)) {
      const torn = Buffer.from(whole).fill(0, cut, end);
      writeFileSync(file, torn);
      // What the zeros have not changed was written to its end.
      expect(found(folder, 1)).toEqual([torn.equals(whole) ? [6, 7, 8, 9] : [6, 7, 8]]);
    }
    writeFileSync(file, Buffer.from(whole).fill(0, start + 20, end));
    const wal = new Wal(folder, readSegmentsAfter(1, folder)[0]!.end);
    await append(wal, recordOf(12), recordOf(13));
    wal.close();
    expect(found(folder, 1)).toEqual([[6, 7, 8, 12, 13]]);
  });

  it('never continues with the record after one of the same length that was overwritten', async () => {
    const { folder, starts } = await twoSegments();
    const last = readSegmentsAfter(1, folder)[0]!;
    // As if the record before the last had been torn, and the last not.
    const bytes = readFileSync(segmentFile(folder, 0)).fill(0, starts[1]![2]!, starts[1]![3]!);
    writeFileSync(segmentFile(folder, 0), bytes);
    expect(() => readSegmentsAfter(1, folder)).toThrow(CorruptionError);
    const wal = new Wal(folder, { ...last.end, position: starts[1]![2]!, checksum: 0 });
    await append(wal, recordOf(8));
    wal.close();
    expect(() => readSegmentsAfter(1, folder)).toThrow(CorruptionError);
  });

  it('with a flipped bit is corrupt, wherever it is, but in its last record, which may be a torn one', async () => {
    const { folder, starts } = await twoSegments();
    const random = randomOf(7);
    const rows = found(folder).flat();
    for (const [segment, slot] of [[0, 1] as const, [1, 0] as const]) {
      const file = segmentFile(folder, slot);
      const whole = readFileSync(file);
      const descriptor = openSync(file, 'r+');
      const last = segment === 1 ? starts[1]!.at(-2)! : Infinity;
      const end = starts[segment]!.at(-1)!;
      let silent = 0;
      for (let at = 0; at < end; at += at < 48 || at >= RECORDS_AT ? 1 : 40) {
        const bit = 1 << random.below(8);
        writeSync(descriptor, Buffer.of(whole[at]! ^ bit), 0, 1, at);
        if (at < last) expect(() => found(folder), `byte ${at} of ${file}`).toThrow(CorruptionError);
        else {
          silent++;
          expect(found(folder).flat(), `byte ${at} of ${file}`).toEqual(rows.slice(0, -1));
        }
        writeSync(descriptor, whole, at, 1, at);
      }
      closeSync(descriptor);
      expect(silent).toBe(segment === 1 ? end - last : 0);
      // Bytes after the end do not matter.
      writeFileSync(file, Buffer.from(whole).fill(1, end + 100, end + 200));
      expect(found(folder).flat()).toEqual(rows);
      writeFileSync(file, whole);
    }
  });

  it('without one of its files, or without a segment between, is corrupt', async () => {
    const { folder } = await twoSegments();
    const copy = newFolder();
    cpSync(folder, copy, { recursive: true });
    rmSync(segmentFile(folder, 1));
    expect(() => found(folder)).toThrow(CorruptionError);
    expect(() => found(folder, 1)).toThrow(CorruptionError);
    writeFileSync(segmentFile(copy, 1), Buffer.alloc(512 << 10));
    expect(() => found(copy)).toThrow(CorruptionError);
  });
});

describe('A file of the log', () => {
  it('whose beginning is lost with its first records is corrupt', async () => {
    const { folder, starts } = await twoSegments();
    const file = segmentFile(folder, 0);
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill(0, 0, starts[1]![2]));
    expect(() => found(folder)).toThrow(CorruptionError);
  });

  it.each([0, 100, RECORDS_AT, 100_000])('that was cut to %i bytes is corrupt', async (length) => {
    const { folder } = await twoSegments();
    expect(found(folder, 1)).toEqual([[6, 7, 8, 9]]);
    truncateSync(segmentFile(folder, 0), length);
    expect(() => found(folder, 1)).toThrow(CorruptionError);
    // Before the first checkpoint, too: a file has its size before it has its name.
    const young = newFolder();
    const wal = new Wal(young, { next: 1 });
    await append(wal, recordOf(1));
    wal.close();
    expect(found(young)).toEqual([[1]]);
    truncateSync(segmentFile(young, 1), length);
    expect(() => found(young)).toThrow(CorruptionError);
  });

  it('that a first start did not complete is made again', () => {
    const folder = newFolder();
    writeFileSync(`${segmentFile(folder, 0)}.new`, 'a part');
    new Wal(folder, { next: 1 }).close();
    expect(found(folder)).toEqual([[]]);
  });
});

describe('A store whose log is damaged', () => {
  it('is not opened, and not changed', async () => {
    const location = newFolder();
    const options = { location, checkpointBytes: 5_000, checkpointDelayMilliseconds: 500 };
    const engine = await openLmdb(options);
    const partition = openPartition(engine);
    for (let i = 0; i < 8; i++) await put(partition, key('row', i), 'x'.repeat(1_000));
    const copy = newFolder();
    cpSync(location, copy, { recursive: true });
    await engine.close();
    const file = segmentFile(copy, 1);
    const whole = readFileSync(file);
    const damaged = Buffer.from(whole).fill(bytes('~'), RECORDS_AT + 1_500, RECORDS_AT + 1_501);
    writeFileSync(file, damaged);
    await expect(openLmdb({ ...options, location: copy })).rejects.toThrow(CorruptionError);
    expect(readFileSync(file).equals(damaged)).toBe(true);
    writeFileSync(file, whole);
    await (await openLmdb({ ...options, location: copy })).close();
  });
});
