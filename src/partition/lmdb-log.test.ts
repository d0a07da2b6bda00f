import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Key } from './keys.ts';
import { BASE_BYTES, type Log, openLog, segmentsIn } from './lmdb-log.ts';
import { changesIn, createRecord } from './lmdb-record.ts';

const baseOf = (number: number): Buffer => Buffer.alloc(BASE_BYTES, number);
let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-log-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

function append(log: Log, ...numbers: number[]): void {
  for (const number of numbers) {
    const record = createRecord();
    record.put(`key ${number}` as Key, BigInt(number), Buffer.alloc(100 * number, number));
    log.append(record);
  }
}

/** What was put since the base of each segment, oldest first. */
function found(): { base: number; isSettled: boolean; puts: number[] }[] {
  return segmentsIn(folder).map(({ base, isSettled, records }) => ({
    base: base[0]!,
    isSettled,
    puts: records.flatMap((record) =>
      [...changesIn(record)].map((change) => ('key' in change ? Number(change.key.slice(4)) : -1)),
    ),
  }));
}

describe('A record of the log', () => {
  it('gives back every change as it was, in its order', () => {
    const record = createRecord();
    const value = Buffer.from('any bytes \x00\xff', 'latin1');
    // More than it has room for at first, and again after it was cleared.
    const large = Buffer.alloc(3 << 20, 7);
    record.put('dropped' as Key, 1n, large);
    record.clear();
    expect(record.isEmpty()).toBe(true);
    const stored = Buffer.from(record.put('\x00\xfe key' as Key, 2n ** 63n, value));
    record.remove('gone' as Key);
    record.highWater(77n);
    record.put('' as Key, 5n, large);
    const changes = [...changesIn(record.sealed({ segment: 1, position: 0 }).subarray(8))];
    expect(changes.slice(0, 3)).toEqual([
      { kind: 'put', key: '\x00\xfe key', stored },
      { kind: 'remove', key: 'gone' },
      { kind: 'highWater', until: 77n },
    ]);
    expect(stored).toEqual(Buffer.concat([Buffer.from('8000000000000000', 'hex'), value]));
    expect(changes[3]).toMatchObject({ kind: 'put', key: '' });
    expect(changes).toHaveLength(4);
  });
});

describe('The log', () => {
  it('holds what was appended since each base', () => {
    const log = openLog(folder, []);
    log.begin(baseOf(1));
    log.settle();
    append(log, 1, 2, 3);
    expect(found()).toEqual([{ base: 1, isSettled: true, puts: [1, 2, 3] }]);
    log.begin(baseOf(2));
    append(log, 4);
    expect(found()).toEqual([
      { base: 1, isSettled: true, puts: [1, 2, 3] },
      { base: 2, isSettled: false, puts: [4] },
    ]);
    log.settle();
    expect(found().at(-1)).toEqual({ base: 2, isSettled: true, puts: [4] });
  });

  it('ends before a record that was not written to its end, at whatever byte that was, and goes on there', () => {
    const log = openLog(folder, []);
    log.begin(baseOf(1));
    log.settle();
    append(log, 1, 2, 3);
    log.close();
    const file = join(folder, 'log-0');
    const whole = readFileSync(file);
    const end = whole.lastIndexOf(3) + 1;
    for (let cut = end - 328; cut < end; cut++) {
      for (const rest of [Buffer.alloc(end - cut), Buffer.alloc(end - cut, 0xaa)]) {
        writeFileSync(file, Buffer.concat([whole.subarray(0, cut), rest, whole.subarray(end)]));
        expect(found()[0]!.puts).toEqual([1, 2]);
      }
    }
    const next = openLog(folder, segmentsIn(folder));
    append(next, 4);
    expect(found()).toEqual([{ base: 1, isSettled: true, puts: [1, 2, 4] }]);
  });

  it('finds nothing of what its files held before', () => {
    const log = openLog(folder, []);
    for (let base = 1; base <= 9; base++) {
      log.begin(baseOf(base));
      log.settle();
      append(log, ...Array.from({ length: 10 - base }, (_, i) => 10 * base + i));
      const last = found().at(-1)!;
      expect(last.base).toBe(base);
      expect(last.puts).toHaveLength(10 - base);
    }
    expect(readdirSync(folder).sort()).toEqual(['log-0', 'log-1']);
  });

  it('never writes over what is needed, however often it is opened before a base is settled', () => {
    const log = openLog(folder, []);
    log.begin(baseOf(1));
    log.settle();
    append(log, 1);
    log.begin(baseOf(2));
    append(log, 2);
    log.close();
    for (let tries = 0; tries < 5; tries++) {
      const next = openLog(folder, segmentsIn(folder));
      next.begin(baseOf(3));
      next.close();
      expect(found().slice(0, 2)).toEqual([
        { base: 1, isSettled: true, puts: [1] },
        { base: 2, isSettled: false, puts: [2] },
      ]);
    }
    const last = openLog(folder, segmentsIn(folder));
    last.begin(baseOf(4));
    last.settle();
    expect(found().at(-1)).toEqual({ base: 4, isSettled: true, puts: [] });
  });

  it('has nothing of what was taken back', () => {
    const log = openLog(folder, []);
    log.begin(baseOf(1));
    log.settle();
    append(log, 1, 2);
    log.takeBack();
    expect(found()[0]!.puts).toEqual([1]);
    append(log, 3);
    expect(found()[0]!.puts).toEqual([1, 3]);
  });

  it('has no segment whose base was not written to its end', () => {
    const log = openLog(folder, []);
    log.begin(baseOf(1));
    log.settle();
    append(log, 1);
    log.begin(baseOf(2));
    const file = join(folder, 'log-1');
    const bytes = readFileSync(file);
    bytes[9_000] = 0;
    writeFileSync(file, bytes);
    expect(found()).toEqual([{ base: 1, isSettled: true, puts: [1] }]);
  });
});
