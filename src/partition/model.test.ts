import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  explain,
  type Happened,
  type ModelRow,
  type Operation,
  type Program,
  run,
  show,
} from '../../test/partition/model.ts';
import { missing, startCluster } from '../../test/support/postgres-cluster.ts';
import { bytes, key, nextTick, nextTicks, rowText } from './conformance/harness.ts';
import { decodeKey, type Key, volatileKey } from './keys.ts';
import { openLmdb } from './lmdb/engine.ts';
import { openMemory } from './memory/engine.ts';
import type { Engine, Partition, Row, Transaction } from './partition.ts';
import { openPostgres } from './postgres/engine.ts';
import { openPartition } from './transact.ts';
import { decodeCounter } from './values.ts';

const aName = fc.constantFrom('a', 'ab', 'b', 'c', 'cd', 'd');
/** After every scanned range: a transaction that reads a key it added to is an error. */
const aCounter = fc.constantFrom('~1', '~2');
const aMaximum = fc.constantFrom('~3', '~4');
const anyRange = fc.record({
  from: fc.constantFrom('', 'a', 'b', 'c'),
  to: fc.constantFrom('a', 'b', 'c', 'd', 'z'),
  limit: fc.integer({ min: 1, max: 5 }),
  bytesMax: fc.constantFrom(1, 9, 40, 1000),
  reverse: fc.boolean(),
});
const anOperation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('get' as const), name: aName }) },
  fc.record({ kind: fc.constant('getMany' as const), names: fc.array(aName, { maxLength: 4 }) }),
  { weight: 3, arbitrary: anyRange.map((range) => ({ kind: 'scan' as const, ...range })) },
  anyRange.map((range) => ({ kind: 'scanUnchecked' as const, ...range })),
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('put' as const), name: aName, value: fc.constant('') }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), name: aName }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('add' as const), name: aCounter, n: fc.bigInt({ min: -2n, max: 2n }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('max' as const), name: aMaximum, n: fc.bigInt({ min: 1n, max: 4n }) }),
  },
  fc.record({ kind: fc.constant('remove' as const), name: fc.oneof(aCounter, aMaximum) }),
  { weight: 2, arbitrary: fc.constant({ kind: 'wait' as const }) },
);
const aProgram: fc.Arbitrary<Program> = fc.record({
  operations: fc.array(anOperation, { minLength: 1, maxLength: 6 }),
  throws: fc.integer({ max: 4, min: 0 }).map((chance) => chance === 0),
});
/** How a program runs: its queue key, its partition, and after how many turns. */
const aCaller = fc.record({
  program: aProgram,
  queueKey: fc.integer({ min: 0, max: 2 }),
  side: fc.integer({ min: 0, max: 1 }),
  later: fc.integer({ min: 0, max: 3 }),
});

/** Values name their writer, so that a read names the write it saw. */
function signed(program: Program, by: number): Program {
  const sign = (operation: Operation, i: number): Operation =>
    operation.kind === 'put' ? { ...operation, value: `${by}.${i}`.padEnd(4 + ((by + i) % 8), '.') } : operation;
  return { ...program, operations: program.operations.map(sign) };
}

const refusal = new Error('refused');
const nameOf = (row: Row): string => String(decodeKey(row.key).at(-1));
const plain = (row: Row | undefined) => row && { name: nameOf(row), value: rowText(row)! };

const SPACES_MAX = 1_000_000;

/**
 * Every history has rows of its own, so that one store serves them all. In every other history the rows from 'c' on are volatile, and come
 * after the logged ones still: the keys of earlier histories are not between the two kinds.
 */
function keyOf(space: number, name: string): Key {
  return space % 2 && name >= 'c' ? volatileKey(['space', SPACES_MAX - space, name]) : key('space', space, name);
}

async function perform(
  tx: Transaction,
  space: number,
  { operations, throws }: Program,
  observed: string[],
): Promise<void> {
  const at = (name: string) => keyOf(space, name);
  for (const operation of operations) {
    let seen = '';
    if (operation.kind === 'get') seen = show([plain(await tx.get(at(operation.name)))]);
    else if (operation.kind === 'getMany') seen = show((await tx.getMany(operation.names.map(at))).map(plain));
    else if (operation.kind === 'scan' || operation.kind === 'scanUnchecked') {
      const range = { from: at(operation.from), to: at(operation.to) };
      seen = show((await tx[operation.kind](range, operation)).map(plain));
    } else if (operation.kind === 'put') tx.put(at(operation.name), bytes(operation.value));
    else if (operation.kind === 'remove') tx.remove(at(operation.name));
    else if (operation.kind === 'add' || operation.kind === 'max') tx[operation.kind](at(operation.name), operation.n);
    else await nextTick();
    observed.push(seen);
  }
  if (throws) throw refusal;
}

async function rowsOf(partition: Partition, space: number): Promise<ModelRow[]> {
  const range = { from: keyOf(space, ''), to: keyOf(space, '\x7f') };
  const rows = await partition.read((at) => at.scan(range, { limit: 100 }));
  return rows.map((row) => {
    const name = nameOf(row);
    const value = name.startsWith('~') ? String(decodeCounter(row)) : rowText(row)!;
    return { name, value, timestamp: row.version };
  });
}

interface Opened {
  engine: Engine;
  /** One more on the same store. */
  beside?: Engine;
  drop?: () => Promise<void>;
}
const engines: Record<string, { histories: number; open: () => Promise<Opened> }> = {
  memory: { histories: 1_000, open: async () => ({ engine: openMemory() }) },
  LMDB: {
    histories: 150,
    async open() {
      const location = await mkdtemp(join(tmpdir(), 'holdfast-model-'));
      return { engine: await openLmdb({ location }), drop: () => rm(location, { recursive: true, force: true }) };
    },
  },
  ...(missing ? {} : { PostgreSQL: { histories: 200, open: openTwoOnPostgres } }),
};

async function openTwoOnPostgres(): Promise<Opened> {
  const { url, drop } = await startCluster();
  return { engine: await openPostgres({ url }), beside: await openPostgres({ url }), drop };
}

describe.each(Object.entries(engines))('Histories on %s', (_, { histories, open }) => {
  let opened: Opened;
  let partitions: [Partition, Partition];
  let spaces = 0;
  beforeAll(async () => {
    opened = await open();
    partitions = [openPartition(opened.engine), openPartition(opened.beside ?? opened.engine)];
  });
  afterAll(async () => {
    await opened.engine.close();
    await opened.beside?.close();
    await opened.drop?.();
  });

  it('of one transaction after another are those of a sorted array', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(aProgram, { maxLength: 12 }), async (programs) => {
        const space = spaces++;
        let rows: readonly ModelRow[] = [];
        for (const [i, unsigned] of programs.entries()) {
          const program = signed(unsigned, i);
          const observed: string[] = [];
          const { timestamp } = await partitions[0]
            .transact(key('space', space), (tx) => perform(tx, space, program, observed))
            .catch((error) => {
              expect(error).toBe(refusal);
              return { timestamp: 0n };
            });
          const expected = run(rows, program, timestamp);
          expect(observed).toEqual(expected.observed);
          rows = expected.rows;
          expect(await rowsOf(partitions[0], space)).toEqual(rows);
        }
      }),
      { numRuns: histories },
    );
  }, 60_000);

  it('of concurrent transactions are serializable', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(aCaller, { maxLength: 9 }), async (callers) => {
        const space = spaces++;
        let moment = 0;
        const first = signed(
          { operations: ['a', 'c'].map((name) => ({ kind: 'put', name, value: '' })), throws: false },
          99,
        );
        await partitions[0].transact(key('space', space), (tx) => perform(tx, space, first, []));
        const before = await rowsOf(partitions[0], space);
        const happened = await Promise.all(
          callers.map(async ({ program: unsigned, queueKey, side, later }, i): Promise<Happened> => {
            await nextTicks(later);
            const program = signed(unsigned, i);
            const began = moment++;
            let observed: string[] = [];
            let timestamp = 0n;
            await partitions[side as 0 | 1]
              .transact(key('queue key', queueKey), (tx) => {
                observed = [];
                timestamp = tx.timestamp;
                return perform(tx, space, program, observed);
              })
              .catch((error) => expect(error).toBe(refusal));
            return { program, observed, timestamp, began, ended: moment++ };
          }),
        );
        const left = await rowsOf(partitions[1], space);
        expect(explain(before, happened, left), 'no serial order explains this history').toBeDefined();
      }),
      { numRuns: histories },
    );
  }, 60_000);
});
