/** A commit as the arguments of its server function: arrays in PostgreSQL's own binary form, which bytes cross as they are. */
import { plus, versionOfAdd } from '../counters.ts';
import type { Key } from '../keys.ts';
import { bufferOf, COUNTER_BYTES, type Commit, type Instant, type Stamp } from '../partition.ts';
import type { Lock } from './advisory-locks.ts';

const BOOL = 16;
const BYTEA = 17;
const INT8 = 20;

/** All bodies together do this to a row. */
interface Written {
  /** None: it is removed. */
  value: Uint8Array | undefined;
  version: Stamp;
  /** It replaces no version from here on. */
  least: Stamp;
}
interface Added {
  n: bigint;
  stamp: Stamp;
}

export const COMMIT_TEXT = `select outcome, at, in_the_way from S.commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
  $12, $13, $14, $15, $16, $17, $18, $19, $20)`;

export function argumentsOf(commit: Commit, now: Instant, anchors: readonly bigint[], locks: readonly Lock[]) {
  const { checks, bodies } = commit;
  // What ends before it begins holds nothing.
  const ranges = commit.ranges.filter(({ range }) => range.from < range.to);
  const seen = ranges.flatMap(({ rows }) => rows);
  const { written, added } = effectsOf(bodies);
  const [writes, adds] = [[...written], [...added]];
  return [
    commit.id,
    now.toString(),
    commit.before?.toString() ?? null,
    numbers(anchors),
    numbers(locks.map(({ number }) => number)),
    array(
      BOOL,
      locks.map(({ alone }) => Buffer.of(alone ? 1 : 0)),
    ),
    keys(checks.map(({ key }) => key)),
    numbers(checks.map(({ version }) => version)),
    keys(ranges.map(({ range }) => range.from)),
    keys(ranges.map(({ range }) => range.to)),
    numbers(ranges.map(({ rows }) => BigInt(rows.length))),
    keys(seen.map(({ key }) => key)),
    numbers(seen.map(({ version }) => version)),
    keys(writes.map(([key]) => key)),
    array(
      BYTEA,
      writes.map(([, { value }]) => value && bufferOf(value)),
    ),
    numbers(writes.map(([, { version }]) => version)),
    numbers(writes.map(([, { least }]) => least)),
    keys(adds.map(([key]) => key)),
    numbers(adds.map(([, { n }]) => n)),
    numbers(adds.map(([, { stamp }]) => stamp)),
  ];
}

/** What is left when the bodies have written one after another. */
function effectsOf(bodies: Commit['bodies']): { written: Map<Key, Written>; added: Map<Key, Added> } {
  const written = new Map<Key, Written>();
  const added = new Map<Key, Added>();
  for (const { stamp, writes } of bodies) {
    for (const write of writes) {
      const { key } = write;
      const earlier = written.get(key);
      if (write.kind !== 'add') {
        const least = earlier && earlier.least < stamp ? earlier.least : stamp;
        written.set(key, { value: write.kind === 'put' ? write.value : undefined, version: stamp, least });
        added.delete(key);
      } else if (earlier) {
        const { length } = earlier.value ?? { length: COUNTER_BYTES };
        if (length !== COUNTER_BYTES) throw new Error(`a counter is added to a row of ${length} bytes`);
        earlier.value = plus(earlier.value, write.n);
        earlier.version = versionOfAdd(stamp, earlier.version);
      } else {
        added.set(key, { n: BigInt.asIntN(64, (added.get(key)?.n ?? 0n) + write.n), stamp });
      }
    }
  }
  return { written, added };
}

const keys = (elements: readonly Key[]): Buffer =>
  array(
    BYTEA,
    elements.map((key) => Buffer.from(key, 'latin1')),
  );

function numbers(elements: readonly (bigint | undefined)[]): Buffer {
  return array(
    INT8,
    elements.map((number) => {
      if (number === undefined) return undefined;
      const bytes = Buffer.allocUnsafe(8);
      bytes.writeBigInt64BE(number);
      return bytes;
    }),
  );
}

/** Without bytes: null. */
function array(type: number, elements: readonly (Buffer | undefined)[]): Buffer {
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

/** A literal of the key, or of a piece of one, for statements in text. */
export const literal = (key: string): string => `'\\x${Buffer.from(key, 'latin1').toString('hex')}'`;
export const literals = (wanted: readonly Key[]): string =>
  `'{${wanted.map((key) => `"\\\\x${Buffer.from(key, 'latin1').toString('hex')}"`).join()}}'`;
