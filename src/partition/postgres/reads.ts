/** Repeatable-read snapshots with pipelined queries: reads that are pending at one time share a round trip. */
import { isVolatile, type Key, type KeyGrouping, keyAfterGroup, type Range, splitAtVolatile } from '../keys.ts';
import type { Instant, Page, PagedSnapshot, PageOptions, Row, ScanOptions } from '../partition.ts';
import { stoppedEarly } from '../values.ts';
import type { ServerClock } from './clock.ts';
import { keyArrayLiteral, keyLiteral } from './commit-codec.ts';
import { ConnectionCache } from './connection-cache.ts';
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
  readonly resolve: (rows: unknown[][]) => void;
  readonly reject: (error: Error) => void;
}
interface PendingGet {
  readonly key: Key;
  readonly resolve: (row: Row | undefined) => void;
  readonly reject: (error: Error) => void;
}
type QueryResult = { rows: unknown[][] };

/** What the snapshots of a process share. */
export class Snapshots {
  readonly clock: ServerClock;
  readonly connections: ConnectionCache;
  /** The latest instant of a snapshot: no later snapshot has an earlier one. */
  latestNow: Instant = 0n;

  constructor(pool: Pool, clock: ServerClock) {
    this.clock = clock;
    this.connections = new ConnectionCache(pool);
  }

  snapshot(): PostgresSnapshot {
    return new PostgresSnapshot(this);
  }

  recordNow(instant: Instant): Instant {
    if (instant > this.latestNow) this.latestNow = instant;
    return instant;
  }

  end(): Promise<void> {
    return this.connections.end();
  }
}

/**
 * A transaction begins with the first read. Reads that come while a round trip runs go together in the next, so all transaction
 * functions of a turn share their round trips. The store's time comes along, since another process may have advanced it. It is
 * read before the snapshot is taken, so that no reader finds a lease expired and misses a write under that lease.
 */
class PostgresSnapshot implements PagedSnapshot {
  private readonly shared: Snapshots;
  /** Rows that were read or are being read: each is queried once. */
  private readonly rows = new Map<Key, Promise<Row | undefined>>();
  private pendingGets: PendingGet[] = [];
  private pendingQueries: PendingQuery[] = [];
  /** The snapshot's instant; never changes once it was told. */
  private instant: Instant | undefined;
  /** When the first query was sent: `now` before its answer must not be later than the snapshot. */
  private startedAt: Instant | undefined;
  /** Set while the transaction is open. */
  private connection: Connection | undefined;
  /** After a failure every read fails: a new transaction would show another state. */
  private broken: Error | undefined;
  /** The connection is released by the sender, if one runs, or by `end`. */
  private isSending = false;
  private isEnded = false;

  constructor(shared: Snapshots) {
    this.shared = shared;
  }

  get now(): Instant {
    this.instant ??= this.shared.recordNow(this.startedAt ?? this.shared.clock.now());
    return this.instant;
  }

  get(key: Key): Promise<Row | undefined> {
    let row = this.rows.get(key);
    if (!row) {
      row = new Promise((resolve, reject) => this.pendingGets.push({ key, resolve, reject }));
      this.rows.set(key, row);
      this.scheduleSend();
    }
    return row;
  }

  getMany(keys: readonly Key[]): Promise<(Row | undefined)[]> {
    return Promise.all(keys.map((key) => this.get(key)));
  }

  async scan(range: Range, options: ScanOptions): Promise<Row[]> {
    const parts = splitAtVolatile(range);
    if (options.reverse) parts.reverse();
    const { limit, bytesMax = Infinity } = options;
    const found: Row[] = [];
    for (const part of parts) {
      const bytes = found.reduce((sum, { value }) => sum + value.length, 0);
      const rest = { ...options, limit: limit - found.length, bytesMax: bytesMax - bytes };
      if (!isEmpty(part, rest)) found.push(...(await this.query(scanText(part, rest))));
    }
    return found;
  }

  async page(range: Range, { limit, grouping }: PageOptions): Promise<Page> {
    const bounds = { limit, bytesMax: PAGE_BYTES };
    if (isEmpty(range, bounds)) return { rows: [], next: undefined };
    const [part, after] = splitAtVolatile(range);
    const rows = await this.query(grouping ? pageText(part!, bounds, grouping) : scanText(part!, bounds));
    const next = stoppedEarly(rows, bounds) ? keyAfterGroup(rows.at(-1)!.key, grouping) : after?.from;
    return { rows, next: next !== undefined && next < range.to ? next : undefined };
  }

  end(): void {
    this.isEnded = true;
    if (!this.isSending) this.releaseConnection();
  }

  private query(text: string): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      this.pendingQueries.push({ text, resolve: (rows) => resolve(rows.map(rowFrom)), reject });
      this.scheduleSend();
    });
  }

  private scheduleSend(): void {
    if (this.isSending) return;
    this.isSending = true;
    setImmediate(async () => {
      while (this.pendingGets.length + this.pendingQueries.length > 0) await this.send(this.takePending());
      this.isSending = false;
      if (this.isEnded) this.releaseConnection();
    });
  }

  private takePending(): PendingQuery[] {
    const [gets, queries] = [this.pendingGets, this.pendingQueries];
    this.pendingGets = [];
    this.pendingQueries = [];
    const [logged, volatile] = [gets.filter(({ key }) => !isVolatile(key)), gets.filter(({ key }) => isVolatile(key))];
    return [...[logged, volatile].filter(({ length }) => length > 0).map(combineGets), ...queries];
  }

  private async send(group: readonly PendingQuery[]): Promise<void> {
    const { clock, connections } = this.shared;
    try {
      if (this.broken) throw this.broken;
      const statements = group.map((each) => each.text);
      const first: string[] = [];
      if (!this.connection) {
        const { connection, isOver } = await connections.take();
        this.connection = connection;
        this.startedAt = clock.now();
        first.push(...(isOver ? ['commit'] : []), ...timeStatements(this.shared.latestNow), BEGIN);
      }
      const answer = await this.connection.query({ text: [...first, ...statements].join('; '), rowMode: 'array' });
      const answers = [answer].flat() as QueryResult[];
      const time = answers.splice(0, first.length).at(TIME_AT);
      if (time) {
        const serverTime = BigInt(time.rows[0]![0] as string);
        clock.observeServerTime(serverTime);
        this.instant ??= this.shared.recordNow(serverTime);
      }
      for (const [i, { resolve }] of group.entries()) resolve(answers[i]!.rows);
    } catch (error) {
      this.broken ??= asUnavailable(error);
      for (const { reject } of group) reject(this.broken);
    }
  }

  private releaseConnection(): void {
    const used = this.connection;
    this.connection = undefined;
    if (used && this.broken) used.release(true);
    else if (used) this.shared.connections.recycle(used);
    this.broken ??= new Error('the snapshot has ended');
  }
}

/** The prepared statement for rows of this key's kind. */
function statement(name: string, key: Key): string {
  return `holdfast_${isVolatile(key) ? 'volatile_' : ''}${name}`;
}

/** All of one kind, logged or volatile. */
function combineGets(gets: readonly PendingGet[]): PendingQuery {
  return {
    text: `execute ${statement('get', gets[0]!.key)}(${keyArrayLiteral(gets.map(({ key }) => key))})`,
    resolve(found) {
      const byNumber = new Map(found.map(([n, ...row]) => [Number(n), row]));
      for (const [i, { key, resolve }] of gets.entries()) {
        const row = byNumber.get(i + 1);
        resolve(row && { key, version: BigInt(row[0] as string), value: row[1] as Buffer });
      }
    },
    reject(error) {
      for (const { reject } of gets) reject(error);
    },
  };
}

function isEmpty({ from, to }: Range, { limit, bytesMax = 1 }: ScanOptions): boolean {
  return from >= to || limit <= 0 || bytesMax <= 0;
}

function scanText(range: Range, options: ScanOptions): string {
  const name = statement(options.reverse ? 'scan_back' : 'scan', range.from);
  return `execute ${name}(${boundsText(range, options)})`;
}

function pageText(range: Range, options: ScanOptions, { from, delimiter }: KeyGrouping): string {
  return `execute ${statement('page', range.from)}(${boundsText(range, options)}, ${from}, ${keyLiteral(delimiter)})`;
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
