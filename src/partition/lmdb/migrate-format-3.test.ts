import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { get, key } from '../conformance/harness.ts';
import type { Key } from '../keys.ts';
import { openPartition } from '../transact.ts';
import { openLmdb } from './engine.ts';
import { dataFile, openFiles, PAGE_BYTES, type RowsDatabase } from './files.ts';
import { migrateLog } from './migrate-format-3.ts';
import { Generation } from './overlay.ts';
import { encodeRecord, HEADER_BYTES } from './wal-record.ts';

const BLOCK_BYTES = 4_096;

/** A folder of format 3 with three rows in the synced state. */
async function oldFolder() {
  const location = mkdtempSync(join(tmpdir(), 'holdfast-format-3-'));
  onTestFinished(() => rmSync(location, { recursive: true, force: true }));
  await commit(location, (rows) => {
    for (const name of ['kept', 'changed', 'removed']) rows.putSync(key(name), stored(1n, 'base'));
  });
  return { location, base: readFileSync(dataFile(location)).subarray(0, 2 * PAGE_BYTES) };
}

async function commit(location: string, write: (rows: RowsDatabase) => void): Promise<void> {
  const { environment, rows } = openFiles(location);
  rows.transactionSync(() => write(rows));
  await environment.close();
}

function stored(version: bigint, text: string): Buffer {
  const bytes = Buffer.alloc(8 + text.length, `12345678${text}`);
  bytes.writeBigUInt64BE(version);
  return bytes;
}

/** A segment as that format had it: head, mark, base, records. */
function logOf(number: number, base: Buffer, isSettled: boolean, records: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(BLOCK_BYTES);
  head.writeUIntBE(number, 0, 6);
  head.writeUInt32BE(crc32(base, crc32(`Holdfast log 1, segment ${number}`)), 6);
  const mark = Buffer.alloc(BLOCK_BYTES);
  if (isSettled) mark.writeUInt32BE(crc32(`segment ${number} is settled`));
  const pieces = [head, mark, base];
  let position = 2 * BLOCK_BYTES + base.length;
  for (const changes of records) {
    const header = Buffer.alloc(8);
    header.writeUInt32BE(changes.length, 0);
    header.writeUInt32BE(crc32(changes, crc32(`${number} ${position} ${changes.length}`)), 4);
    pieces.push(header, changes);
    position += 8 + changes.length;
  }
  return Buffer.concat([...pieces, Buffer.alloc(10_000)]);
}

/** The changes of a record, which were the same. */
function changes(rows: Readonly<Record<string, string | undefined>>, until?: bigint): Buffer {
  const generation = new Generation();
  for (const [name, text] of Object.entries(rows)) {
    generation.write(key(name) as Key, 2n, text === undefined ? undefined : Buffer.from(text));
  }
  return Buffer.concat(encodeRecord(generation.written, until)).subarray(HEADER_BYTES);
}

async function readRows(location: string): Promise<(string | undefined)[]> {
  const partition = openPartition(await openLmdb({ location }));
  const rows = await Promise.all(
    ['kept', 'changed', 'removed', 'added', 'lost'].map((name) => get(partition, key(name))),
  );
  await partition.close();
  return rows;
}

describe('A folder of format 3', () => {
  it('that was stopped cleanly is opened as it is', async () => {
    const { location, base } = await oldFolder();
    writeFileSync(join(location, 'log-0'), logOf(7, base, true, []));
    expect(await readRows(location)).toEqual(['base', 'base', 'base', undefined, undefined]);
    expect(existsSync(join(location, 'log-0'))).toBe(false);
  });

  it('is migrated to the state of its log, whatever a crash has left in the file of LMDB, and its time continues', async () => {
    const { location, base } = await oldFolder();
    const until = 4_000_000_000_000_000_000n;
    // What was committed after the base is no part of any state that was synced.
    await commit(location, (rows) => rows.putSync(key('lost'), stored(9n, 'lost')));
    const first = [changes({ changed: 'once' }), changes({ removed: undefined, added: 'early' })];
    const second = [changes({ changed: 'twice' }, until)];
    writeFileSync(join(location, 'log-1'), logOf(8, base, true, first));
    writeFileSync(join(location, 'log-0'), logOf(9, Buffer.alloc(base.length, 1), false, second));
    writeFileSync(join(location, 'log-2'), logOf(7, Buffer.alloc(base.length, 1), true, [changes({ kept: 'no' })]));
    const logs = [0, 1, 2].map((slot) => join(location, `log-${slot}`));
    const whole = logs.map((log) => readFileSync(log));
    await migrateLog(location);
    expect(logs.some((log) => existsSync(log))).toBe(false);
    // As if that start had been killed before it removed the log.
    for (const [slot, log] of logs.entries()) writeFileSync(log, whole[slot]!);
    const engine = await openLmdb({ location });
    expect(engine.clock.now()).toBeGreaterThanOrEqual(until);
    await engine.close();
    expect(await readRows(location)).toEqual(['base', 'twice', undefined, 'early', undefined]);
    expect(logs.some((log) => existsSync(log))).toBe(false);
  });

  it.each([1, 2, 3])(
    'is migrated by the next start when this one is killed after it removed %i files',
    async (count) => {
      const { location, base } = await oldFolder();
      const outdated = Buffer.from(base);
      await commit(location, (rows) => rows.putSync(key('kept'), stored(2n, 'settled')));
      const newer = readFileSync(dataFile(location)).subarray(0, 2 * PAGE_BYTES);
      writeFileSync(join(location, 'log-2'), logOf(7, outdated, true, []));
      writeFileSync(join(location, 'log-1'), logOf(8, outdated, true, [changes({ kept: 'logged' })]));
      writeFileSync(join(location, 'log-0'), logOf(9, newer, true, [changes({ changed: 'last' })]));
      let left = count;
      const killed = migrateLog(location, (file) => {
        if (left-- === 0) throw new Error('killed');
        rmSync(file);
      });
      if (count < 3) await expect(killed).rejects.toThrow('killed');
      else await killed;
      expect(await readRows(location)).toEqual(['settled', 'last', 'base', undefined, undefined]);
    },
  );
});
