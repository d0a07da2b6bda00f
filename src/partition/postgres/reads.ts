/** Repeatable-read snapshots with pipelined queries: reads that are pending at one time share a round trip. */
import { type Key, type KeyGrouping, keyAfterGroup, type Range } from '../keys.ts';
import { type Engine, type Instant, type Row, type ScanOptions, stoppedEarly } from '../partition.ts';
import type { ServerClock } from './clock.ts';
import { keyArrayLiteral, keyLiteral } from './commit-codec.ts';
import { asUnavailable } from './errors.ts';
import type { Connection, Pool } from './pool.ts';

const BEGIN = 'begin isolation level repeatable read read only';
/**
 * In a transaction of its own, before the snapshot is taken: holdfast_now waits for the commits that a reader at this instant must
 * see.
 * @param atLeast the latest instant of this process's snapshots
 */
const timeStatements = (atLeast: Instant): string[] => ['begin', `execute holdfast_now(${atLeast})`, 'commit'];
/** The index of holdfast_now in the statements before the first reads, from their end. */
const TIME_AT = -3;
const BYTES_MAX = '9223372036854775807';
/** Values of a page at most: they are in memory at once. */
const PAGE_BYTES = 4 << 20;

interface PendingQuery {
  readonly text: string;
  readonly take: (rows: unknown[][]) => void;
  readonly reject: (error: Error) => void;
}
type QueryResult = { rows: unknown[][] };

/**
 * A transaction begins with the first read. Reads that come while a round trip runs go together in the next, so all transaction
 * functions of a turn share their round trips. The store's time comes along, since another process may have advanced it. It is
 * read before the snapshot is taken, so that no reader finds a lease expired and misses a write under that lease.
 */
export function makeSnapshots(pool: Pool, clock: ServerClock): { snapshot: Engine['snapshot']; end(): Promise<void> } {
  const spare = makeConnectionCache(pool);
  /** The latest instant of this process's snapshots. */
  let latestNow = 0n;
  const recordNow = (instant: Instant): Instant => {
    if (instant > latestNow) latestNow = instant;
    return instant;
  };
  const snapshot: Engine['snapshot'] = () => {
    const rows = new Map<Key, Promise<Row | undefined>>();
    let pendingGets: { key: Key; take: (row: Row | undefined) => void; reject: (error: Error) => void }[] = [];
    let pendingQueries: PendingQuery[] = [];
    let now: Instant | undefined;
    /** When the first query was sent: `now` before its answer must not be later than the snapshot. */
    let startedAt: Instant | undefined;
    let connection: Connection | undefined;
    let broken: Error | undefined;
    let sending = false;
    let ended = false;

    function scheduleSend(): void {
      if (sending) return;
      sending = true;
      setImmediate(async () => {
        while (pendingGets.length + pendingQueries.length > 0) await send(takePending());
        sending = false;
        if (ended) releaseConnection();
      });
    }

    function takePending(): PendingQuery[] {
      const [gets, scans] = [pendingGets, pendingQueries];
      pendingGets = [];
      pendingQueries = [];
      if (gets.length === 0) return scans;
      const get: PendingQuery = {
        text: `execute holdfast_get(${keyArrayLiteral(gets.map(({ key }) => key))})`,
        take(found) {
          const byNumber = new Map(found.map(([n, ...row]) => [Number(n), row]));
          for (const [i, { key, take }] of gets.entries()) {
            const row = byNumber.get(i + 1);
            take(row && { key, version: BigInt(row[0] as string), value: row[1] as Buffer });
          }
        },
        reject: (error) => {
          for (const { reject } of gets) reject(error);
        },
      };
      return [get, ...scans];
    }

    async function send(group: readonly PendingQuery[]): Promise<void> {
      try {
        if (broken) throw broken;
        const statements = group.map((each) => each.text);
        const first: string[] = [];
        if (!connection) {
          const taken = await spare.take();
          connection = taken.connection;
          startedAt = clock.now();
          first.push(...(taken.isOver ? ['commit'] : []), ...timeStatements(latestNow), BEGIN);
        }
        const answer = await connection.query({ text: [...first, ...statements].join('; '), rowMode: 'array' });
        const answers = [answer].flat() as QueryResult[];
        const time = answers.splice(0, first.length).at(TIME_AT);
        if (time) {
          const serverTime = BigInt(time.rows[0]![0] as string);
          clock.observeServerTime(serverTime);
          now ??= recordNow(serverTime);
        }
        for (const [i, { take }] of group.entries()) take(answers[i]!.rows);
      } catch (error) {
        broken ??= asUnavailable(error);
        for (const { reject } of group) reject(broken);
      }
    }

    function releaseConnection(): void {
      const used = connection;
      connection = undefined;
      if (used && broken) used.release(true);
      else if (used) spare.recycle(used);
      broken ??= new Error('the snapshot has ended');
    }

    const get = (key: Key): Promise<Row | undefined> => {
      let row = rows.get(key);
      if (!row) {
        row = new Promise((take, reject) => pendingGets.push({ key, take, reject }));
        rows.set(key, row);
        scheduleSend();
      }
      return row;
    };
    const queryRows = (text: string): Promise<Row[]> =>
      new Promise((resolve, reject) => {
        pendingQueries.push({ text, take: (found) => resolve(found.map(rowFrom)), reject });
        scheduleSend();
      });
    return {
      get now() {
        now ??= recordNow(startedAt ?? clock.now());
        return now;
      },
      get,
      getMany: (keys) => Promise.all(keys.map(get)),
      scan: async (range, options) => (isEmpty(range, options) ? [] : queryRows(scanText(range, options))),
      async page(range, { limit, grouping }) {
        const bounds = { limit, bytesMax: PAGE_BYTES };
        if (isEmpty(range, bounds)) return { rows: [], next: undefined };
        const found = await queryRows(grouping ? pageText(range, bounds, grouping) : scanText(range, bounds));
        const next = stoppedEarly(found, bounds) ? keyAfterGroup(found.at(-1)!.key, grouping) : undefined;
        return { rows: found, next: next !== undefined && next < range.to ? next : undefined };
      },
      end() {
        ended = true;
        if (!sending) releaseConnection();
      },
    };
  };
  return { snapshot, end: spare.end };
}

/** How long a finished transaction waits for the next one to commit it: that saves a round trip. */
const SPARE_MILLISECONDS = 20;

function makeConnectionCache(pool: Pool) {
  const spare: { connection: Connection; timer: NodeJS.Timeout }[] = [];
  const leaving = new Set<Promise<void>>();
  function commitAndRelease(connection: Connection): void {
    const left = connection
      .query('commit')
      .then(
        () => connection.release(),
        () => connection.release(true),
      )
      .finally(() => leaving.delete(left));
    leaving.add(left);
  }
  return {
    /** `isOver`: the connection has a finished transaction that the caller is to commit. */
    async take(): Promise<{ connection: Connection; isOver: boolean }> {
      const last = spare.pop();
      if (!last) return { connection: await pool.connect(), isOver: false };
      clearTimeout(last.timer);
      return { connection: last.connection, isOver: true };
    },
    recycle(connection: Connection): void {
      if (pool.waiting() > 0) {
        commitAndRelease(connection);
        return;
      }
      const timer = setTimeout(() => {
        spare.splice(
          spare.findIndex((each) => each.timer === timer),
          1,
        );
        commitAndRelease(connection);
      }, SPARE_MILLISECONDS);
      spare.push({ connection, timer });
    },
    async end(): Promise<void> {
      for (const { connection, timer } of spare.splice(0)) {
        clearTimeout(timer);
        commitAndRelease(connection);
      }
      await Promise.all(leaving);
    },
  };
}

function isEmpty({ from, to }: Range, { limit, bytesMax = 1 }: ScanOptions): boolean {
  return from >= to || limit <= 0 || bytesMax <= 0;
}

function scanText(range: Range, options: ScanOptions): string {
  return `execute holdfast_scan${options.reverse ? '_back' : ''}(${boundsText(range, options)})`;
}

function pageText(range: Range, options: ScanOptions, { from, delimiter }: KeyGrouping): string {
  return `execute holdfast_page(${boundsText(range, options)}, ${from}, ${keyLiteral(delimiter)})`;
}

function boundsText({ from, to }: Range, { limit, bytesMax = Infinity }: ScanOptions): string {
  return `${keyLiteral(from)}, ${keyLiteral(to)}, ${limit}, ${Number.isFinite(bytesMax) ? Math.ceil(bytesMax) : BYTES_MAX}`;
}

function rowFrom([key, version, value]: unknown[]): Row {
  return {
    key: (key as Buffer).toString('latin1') as Key,
    version: BigInt(version as string),
    value: value as Buffer,
  };
}
