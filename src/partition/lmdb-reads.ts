import type { Transaction } from 'lmdb';
import { startClock } from './clock.ts';
import type { Key, Range } from './keys.ts';
import { highWaterIn, openFiles, READERS_MAX, type Rows, versionIn } from './lmdb-files.ts';
import { pageOf } from './pages.ts';
import { type Clock, type Engine, type Row, type ScanOptions, Unavailable } from './partition.ts';

/** The rows alone, to look at: another process may write them meanwhile. */
export function readLmdb(location: string): Engine {
  const { environment, rows, own } = openFiles(location, { readOnly: true });
  const clock = startClock({ atLeast: highWaterIn(own) });
  return {
    clock,
    snapshot: snapshotsOf(rows, clock.now),
    commit: async () => {
      throw new Unavailable('These rows were opened to be read only.');
    },
    close: () => environment.close(),
  };
}

export function snapshotsOf(rows: Rows, now: Clock['now']): Engine['snapshot'] {
  let open = 0;
  return () => {
    if (open >= READERS_MAX) throw new Unavailable('Too many reads at the same time.');
    open++;
    // Before the rows are: who sees a state does not date it later than what is missing in it.
    const instant = now();
    // Without the reset it would be the state that this thread saw last, not the newest.
    rows.resetReadTxn();
    const transaction = rows.useReadTransaction();
    const get = (key: Key): Row | undefined => {
      const shared = rows.getBinaryFast(key, { transaction });
      return shared && copyOf(key, shared, rows.lastSize);
    };
    return {
      now: instant,
      get: async (key) => get(key),
      getMany: async (keys) => keys.map(get),
      scan: async (range, options) => scan(rows, transaction, range, options),
      page: async (range, options) => pageOf((stretch) => rowsIn(rows, transaction, stretch), range, options),
      end() {
        open--;
        transaction.done();
      },
    };
  };
}

function scan(rows: Rows, transaction: Transaction, range: Range, options: ScanOptions): Row[] {
  const { limit, bytesMax = Infinity, reverse = false } = options;
  const found: Row[] = [];
  if (limit <= 0 || bytesMax <= 0 || range.from >= range.to) return found;
  const bounds = reverse
    ? { start: range.to, exclusiveStart: true, end: range.from, inclusiveEnd: true }
    : { start: range.from, end: range.to };
  let bytes = 0;
  for (const { key, value } of rows.getRange({ ...bounds, reverse, limit, transaction })) {
    found.push({ key, version: value.version, value: value.value });
    bytes += value.value.length;
    if (bytes >= bytesMax) break;
  }
  return found;
}

function* rowsIn(rows: Rows, transaction: Transaction, { from, to }: Range): Iterable<Row> {
  for (const { key, value } of rows.getRange({ start: from, end: to, transaction })) {
    yield { key, version: value.version, value: value.value };
  }
}

/** lmdb reads into one buffer again and again. A copy from the pool costs less than one with memory of its own. */
function copyOf(key: Key, shared: Buffer, size: number): Row {
  const value = Buffer.allocUnsafe(size - 8);
  shared.copy(value, 0, 8, size);
  return { key, version: versionIn(shared), value };
}
