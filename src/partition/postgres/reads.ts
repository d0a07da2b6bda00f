import { behind, type Joining, type Key, type Range } from '../keys.ts';
import { type Engine, type Instant, type Row, type ScanOptions, stoppedEarly } from '../partition.ts';
import type { ServerClock } from './clock.ts';
import { literal, literals } from './commit-codec.ts';
import { unavailable } from './errors.ts';
import type { Connection, Pool } from './pool.ts';

const BEGIN = 'begin isolation level repeatable read read only';
/**
 * In a transaction of its own, before the snapshot is taken: it waits for the commits that a reader of this instant must see.
 * @param told no snapshot of this process has a later instant
 */
const timeTexts = (told: Instant): string[] => ['begin', `execute holdfast_now(${told})`, 'commit'];
/** Counted from the end of what precedes the first reads. */
const TIME_AT = -3;
const BYTES_MAX = '9223372036854775807';
/** Of values in a page: they come all at once. */
const PAGE_BYTES = 4 << 20;

interface Asked {
  readonly text: string;
  readonly take: (rows: unknown[][]) => void;
  readonly reject: (error: Error) => void;
}
type Answer = { rows: unknown[][] };

/**
 * A transaction that begins with the first read; what is asked for while it is on its way goes together, so that all bodies
 * of a turn share their round trips. The time of the store comes along: another process may have moved it. It is read before the
 * snapshot is taken, so that no reader finds a lease expired and misses what was written under it in time.
 */
export function snapshotsOf(pool: Pool, clock: ServerClock): { snapshot: Engine['snapshot']; end(): Promise<void> } {
  const spare = spareConnections(pool);
  /** The latest instant that a snapshot of this process has. */
  let told = 0n;
  const tell = (instant: Instant): Instant => {
    if (instant > told) told = instant;
    return instant;
  };
  const snapshot: Engine['snapshot'] = () => {
    const rows = new Map<Key, Promise<Row | undefined>>();
    let wanted: { key: Key; take: (row: Row | undefined) => void; reject: (error: Error) => void }[] = [];
    let asked: Asked[] = [];
    let now: Instant | undefined;
    /** When the snapshot was asked for: a body that wants to know the time before the answer must not be told a later one. */
    let begun: Instant | undefined;
    let connection: Connection | undefined;
    let broken: Error | undefined;
    let sending = false;
    let ended = false;

    function ask(): void {
      if (sending) return;
      sending = true;
      setImmediate(async () => {
        while (wanted.length + asked.length > 0) await send(takeAll());
        sending = false;
        if (ended) leave();
      });
    }

    function takeAll(): Asked[] {
      const [gets, scans] = [wanted, asked];
      wanted = [];
      asked = [];
      if (gets.length === 0) return scans;
      const get: Asked = {
        text: `execute holdfast_get(${literals(gets.map(({ key }) => key))})`,
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

    async function send(group: readonly Asked[]): Promise<void> {
      try {
        if (broken) throw broken;
        const words = group.map((each) => each.text);
        const first: string[] = [];
        if (!connection) {
          const taken = await spare.take();
          connection = taken.connection;
          begun = clock.now();
          first.push(...(taken.isOver ? ['commit'] : []), ...timeTexts(told), BEGIN);
        }
        const answer = await connection.query({ text: [...first, ...words].join('; '), rowMode: 'array' });
        const answers = [answer].flat() as Answer[];
        const time = answers.splice(0, first.length).at(TIME_AT);
        if (time) {
          const heard = BigInt(time.rows[0]![0] as string);
          clock.hear(heard);
          now ??= tell(heard);
        }
        for (const [i, { take }] of group.entries()) take(answers[i]!.rows);
      } catch (error) {
        broken ??= unavailable(error);
        for (const { reject } of group) reject(broken);
      }
    }

    function leave(): void {
      const used = connection;
      connection = undefined;
      if (used && broken) used.release(true);
      else if (used) spare.give(used);
      broken ??= new Error('the snapshot has ended');
    }

    const get = (key: Key): Promise<Row | undefined> => {
      let row = rows.get(key);
      if (!row) {
        row = new Promise((take, reject) => wanted.push({ key, take, reject }));
        rows.set(key, row);
        ask();
      }
      return row;
    };
    const rowsOf = (text: string): Promise<Row[]> =>
      new Promise((resolve, reject) => {
        asked.push({ text, take: (found) => resolve(found.map(rowOf)), reject });
        ask();
      });
    return {
      get now() {
        now ??= tell(begun ?? clock.now());
        return now;
      },
      get,
      getMany: (keys) => Promise.all(keys.map(get)),
      scan: async (range, options) => (isEmpty(range, options) ? [] : rowsOf(scanText(range, options))),
      async page(range, { limit, joining }) {
        const bounds = { limit, bytesMax: PAGE_BYTES };
        if (isEmpty(range, bounds)) return { rows: [], next: undefined };
        const found = await rowsOf(joining ? pageText(range, bounds, joining) : scanText(range, bounds));
        const next = stoppedEarly(found, bounds) ? behind(found.at(-1)!.key, joining) : undefined;
        return { rows: found, next: next !== undefined && next < range.to ? next : undefined };
      },
      end() {
        ended = true;
        if (!sending) leave();
      },
    };
  };
  return { snapshot, end: spare.end };
}

/** How long a transaction that is over may wait for the next one to end it: that saves a round trip. */
const SPARE_MILLISECONDS = 20;

function spareConnections(pool: Pool) {
  const spare: { connection: Connection; timer: NodeJS.Timeout }[] = [];
  const leaving = new Set<Promise<void>>();
  function leave(connection: Connection): void {
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
    /** `isOver`: with a transaction that is still to be ended. */
    async take(): Promise<{ connection: Connection; isOver: boolean }> {
      const last = spare.pop();
      if (!last) return { connection: await pool.connect(), isOver: false };
      clearTimeout(last.timer);
      return { connection: last.connection, isOver: true };
    },
    give(connection: Connection): void {
      if (pool.waiting() > 0) {
        leave(connection);
        return;
      }
      const timer = setTimeout(() => {
        spare.splice(
          spare.findIndex((each) => each.timer === timer),
          1,
        );
        leave(connection);
      }, SPARE_MILLISECONDS);
      spare.push({ connection, timer });
    },
    async end(): Promise<void> {
      for (const { connection, timer } of spare.splice(0)) {
        clearTimeout(timer);
        leave(connection);
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

function pageText(range: Range, options: ScanOptions, { from, mark }: Joining): string {
  return `execute holdfast_page(${boundsText(range, options)}, ${from}, ${literal(mark)})`;
}

function boundsText({ from, to }: Range, { limit, bytesMax = Infinity }: ScanOptions): string {
  return `${literal(from)}, ${literal(to)}, ${limit}, ${Number.isFinite(bytesMax) ? Math.ceil(bytesMax) : BYTES_MAX}`;
}

function rowOf([key, version, value]: unknown[]): Row {
  return {
    key: (key as Buffer).toString('latin1') as Key,
    version: BigInt(version as string),
    value: value as Buffer,
  };
}
