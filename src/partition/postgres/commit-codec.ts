/** Commit codec: a commit as the arguments of S.commit, arrays in PostgreSQL's binary format, in which bytes need no escaping. */

import { isVolatile, type Key, reachesVolatile, splitAtVolatile } from '../keys.ts';
import type { Commit, CommutativeWrite, Instant, RangeCheck, Timestamp } from '../partition.ts';
import {
  applyCommutative,
  asBuffer,
  COUNTER_BYTES,
  isCommutative,
  leavesUnchanged,
  mergeCommutative,
  versionAfterCommutative,
} from '../values.ts';
import type { AdvisoryLock } from './advisory-locks.ts';

const BOOL = 16;
const BYTEA = 17;
const INT8 = 20;

/** The effect of all transactions of the commit on a row. */
interface RowWrite {
  /** Undefined: the row is removed. */
  value: Uint8Array | undefined;
  version: Timestamp;
  /** Of the first transaction that writes the row: the version it replaces must be below. */
  minTimestamp: Timestamp;
}
/** All commutative writes of the commit to a row that no put or removal comes before. */
type NumberWrite = CommutativeWrite & { readonly timestamp: Timestamp };

export const COMMIT_TEXT = `select outcome, at, in_the_way from S.commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
  $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)`;

/** @param commit whose ranges are those of `splitRanges` */
export function encodeCommit(
  commit: Commit,
  now: Instant,
  queueLocks: readonly bigint[],
  locks: readonly AdvisoryLock[],
) {
  const { checks, ranges, writeSets } = commit;
  const seen = ranges.flatMap(({ rows }) => rows);
  const { written, numbers } = mergeWrites(writeSets);
  const writes = [...written];
  const adds = [...numbers.values()].filter(({ kind }) => kind === 'add');
  const maxima = [...numbers.values()].filter(({ kind }) => kind === 'max');
  return [
    commit.id,
    isLogged(commit),
    touchesVolatile(commit),
    now.toString(),
    commit.deadline?.toString() ?? null,
    encodeNumbers(queueLocks),
    encodeNumbers(locks.map(({ number }) => number)),
    encodeArray(
      BOOL,
      locks.map(({ exclusive }) => Buffer.of(exclusive ? 1 : 0)),
    ),
    encodeKeys(checks.map(({ key }) => key)),
    encodeNumbers(checks.map(({ version }) => version)),
    encodeKeys(ranges.map(({ range }) => range.from)),
    encodeKeys(ranges.map(({ range }) => range.to)),
    encodeNumbers(ranges.map(({ rows }) => BigInt(rows.length))),
    encodeKeys(seen.map(({ key }) => key)),
    encodeNumbers(seen.map(({ version }) => version)),
    encodeKeys(writes.map(([key]) => key)),
    encodeArray(
      BYTEA,
      writes.map(([, { value }]) => value && asBuffer(value)),
    ),
    encodeNumbers(writes.map(([, { version }]) => version)),
    encodeNumbers(writes.map(([, { minTimestamp }]) => minTimestamp)),
    ...encodeCommutative(adds),
    ...encodeCommutative(maxima),
  ];
}

/** Whether it writes logged rows, or none at all. Otherwise it waits for no flush. */
export function isLogged({ writeSets }: Commit): boolean {
  const isVolatileOnly = writeSets.every(({ writes }) => writes.every(({ key }) => isVolatile(key)));
  return writeSets.length === 0 || !isVolatileOnly;
}

function touchesVolatile({ checks, ranges, writeSets }: Commit): boolean {
  return (
    checks.some(({ key }) => isVolatile(key)) ||
    ranges.some(({ range }) => reachesVolatile(range)) ||
    writeSets.some(({ writes }) => writes.some(({ key }) => isVolatile(key)))
  );
}

/** Each range check has rows of one kind, logged or volatile, which are in different tables. A range that ends before it starts has no rows. */
export function splitRanges(ranges: readonly RangeCheck[]): RangeCheck[] {
  return ranges.flatMap(({ range, rows }) =>
    splitAtVolatile(range).map((part) => ({
      range: part,
      rows: rows.filter(({ key }) => key >= part.from && key < part.to),
    })),
  );
}

/** The effect of all writes in their order. */
function mergeWrites(writeSets: Commit['writeSets']): {
  readonly written: ReadonlyMap<Key, RowWrite>;
  readonly numbers: ReadonlyMap<Key, NumberWrite>;
} {
  const written = new Map<Key, RowWrite>();
  const numbers = new Map<Key, NumberWrite>();
  for (const { timestamp, writes } of writeSets) {
    for (const write of writes) {
      const { key } = write;
      const earlier = written.get(key);
      if (!isCommutative(write)) {
        const minTimestamp = earlier && earlier.minTimestamp < timestamp ? earlier.minTimestamp : timestamp;
        written.set(key, {
          value: write.kind === 'put' ? write.value : undefined,
          version: timestamp,
          minTimestamp,
        });
        numbers.delete(key);
      } else if (earlier) {
        const { length } = earlier.value ?? { length: COUNTER_BYTES };
        if (length !== COUNTER_BYTES) throw new Error(`a counter is added to a row of ${length} bytes`);
        if (leavesUnchanged(earlier.value, write)) continue;
        earlier.value = applyCommutative(earlier.value, write);
        earlier.version = versionAfterCommutative(timestamp, earlier.version);
      } else {
        const before = numbers.get(key);
        if (before?.kind === 'max' && write.kind === 'max' && before.n >= write.n) continue;
        numbers.set(key, { ...(before ? mergeCommutative(before, write) : write), timestamp });
      }
    }
  }
  return { written, numbers };
}

const encodeCommutative = (writes: readonly NumberWrite[]): Buffer[] => [
  encodeKeys(writes.map(({ key }) => key)),
  encodeNumbers(writes.map(({ n }) => n)),
  encodeNumbers(writes.map(({ timestamp }) => timestamp)),
];

const encodeKeys = (elements: readonly Key[]): Buffer =>
  encodeArray(
    BYTEA,
    elements.map((key) => Buffer.from(key, 'latin1')),
  );

function encodeNumbers(elements: readonly (bigint | undefined)[]): Buffer {
  return encodeArray(
    INT8,
    elements.map((number) => {
      if (number === undefined) return undefined;
      const bytes = Buffer.allocUnsafe(8);
      bytes.writeBigInt64BE(number);
      return bytes;
    }),
  );
}

/** An undefined element is null. */
function encodeArray(type: number, elements: readonly (Buffer | undefined)[]): Buffer {
  const int = (...values: number[]): Buffer => {
    const bytes = Buffer.allocUnsafe(4 * values.length);
    for (const [i, value] of values.entries()) bytes.writeInt32BE(value, 4 * i);
    return bytes;
  };
  if (elements.length === 0) return int(0, 0, type);
  const parts = [int(1, elements.includes(undefined) ? 1 : 0, type, elements.length, 1)];
  for (const element of elements) {
    if (element) parts.push(int(element.length), element);
    else parts.push(int(-1));
  }
  return Buffer.concat(parts);
}

/** A literal of the key, or of a part of one, for statements in text. */
export const keyLiteral = (key: string): string => `'\\x${Buffer.from(key, 'latin1').toString('hex')}'`;
export const keyArrayLiteral = (wanted: readonly Key[]): string =>
  `'{${wanted.map((key) => `"\\\\x${Buffer.from(key, 'latin1').toString('hex')}"`).join()}}'`;
