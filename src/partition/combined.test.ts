import { describe, expect, it } from 'vitest';
import { bytes, gate, get, key, rowNumber, times } from './conformance/harness.ts';
import { openMemory } from './memory/engine.ts';
import {
  type CombinedFunction,
  type CombinedResult,
  type Outcome,
  OutcomeUnknown,
  type Partition,
} from './partition.ts';
import { openPartition } from './transact.ts';

const QUEUE_KEY = key('queue key');
const ROW = key('row');

interface Run {
  readonly inputs: readonly number[];
  readonly lost: readonly CombinedResult<number>[] | undefined;
}

/** Adds each input to the row and answers with the sum so far; a negative input is an error of its call alone. */
function makeSum(weightMax = 100): CombinedFunction<number, number> & { readonly runs: Run[] } {
  const runs: Run[] = [];
  return {
    runs,
    weightMax,
    weight: () => 1,
    async run(tx, inputs, lost) {
      runs.push({ inputs, lost });
      let sum = rowNumber(await tx.get(ROW));
      const results = inputs.map((n) => {
        if (n < 0) return { error: new Error(`refused ${n}`) };
        sum += n;
        return { value: sum };
      });
      tx.put(ROW, bytes(sum));
      return results;
    },
  };
}

const inputsOf = ({ runs }: { readonly runs: readonly Run[] }) => runs.map(({ inputs }) => inputs);
const open = (inject?: () => Outcome | undefined): Partition => openPartition(openMemory(inject ? { inject } : {}));

describe('transactCombined', () => {
  it('runs calls that wait together as one function, and answers each', async () => {
    const partition = open();
    const sum = makeSum();
    const answers = await Promise.all([1, 2, 3].map((n) => partition.transactCombined(QUEUE_KEY, n, sum)));
    expect(answers).toEqual([1, 3, 6]);
    expect(inputsOf(sum)).toEqual([[1, 2, 3]]);
  });

  it('can draw a timestamp for each, of which the last one is the version of the rows', async () => {
    const partition = open();
    const stamps: CombinedFunction<number, bigint> = {
      weightMax: 100,
      weight: () => 1,
      async run(tx, inputs) {
        const results = inputs.map((n) => ({ value: n === 1 ? tx.timestamp : tx.nextTimestamp() }));
        tx.put(ROW, bytes(inputs.length));
        expect(() => tx.nextTimestamp()).toThrow('keeps its timestamp');
        return results;
      },
    };
    const [one, two, three] = await Promise.all([1, 2, 3].map((n) => partition.transactCombined(QUEUE_KEY, n, stamps)));
    expect(one! < two! && two! < three!).toBe(true);
    expect((await partition.read((at) => at.get(ROW)))?.version).toBe(three);
  });

  it('combines calls between which other transactions wait', async () => {
    const partition = open();
    const sum = makeSum();
    const plain = () => partition.transact(QUEUE_KEY, async (tx) => tx.put(key('other'), bytes(1)));
    await Promise.all([
      partition.transactCombined(QUEUE_KEY, 1, sum),
      plain(),
      partition.transactCombined(QUEUE_KEY, 2, sum),
      plain(),
    ]);
    expect(inputsOf(sum)).toEqual([[1, 2]]);
  });

  it('waits for further calls while each turn of the event loop brings one, for some turns', async () => {
    const partition = openPartition(openMemory({}), { turnsGatheredMax: 4 });
    const sum = makeSum();
    const calls: Promise<number>[] = [];
    const callInTurns = async (count: number) => {
      for (let n = 0; n < count; n++) {
        // Asked for first, so that the next call comes before the transaction is looked at.
        const turn = new Promise(setImmediate);
        calls.push(partition.transactCombined(QUEUE_KEY, 1, sum));
        await turn;
      }
      await new Promise(setImmediate);
    };
    await callInTurns(1);
    expect(inputsOf(sum)).toEqual([[1]]);
    await callInTurns(3);
    expect(inputsOf(sum).slice(1)).toEqual([[1, 1, 1]]);
    await callInTurns(9);
    expect(await Promise.all(calls)).toEqual(times(13, (n) => n + 1));
    expect(inputsOf(sum)[2]!.length).toBeLessThanOrEqual(5);
  });

  it('waits for as many calls as were answered together before, for some time', async () => {
    const callAgain = async (gatherMillisecondsMax: number) => {
      const partition = openPartition(openMemory({}), { gatherMillisecondsMax });
      const sum = makeSum();
      const call = (n: number) => partition.transactCombined(QUEUE_KEY, n, sum);
      await Promise.all([1, 2, 3].map(call));
      const calls = [call(4)];
      for (const n of [5, 6]) {
        for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
        calls.push(call(n));
      }
      await Promise.all(calls);
      return inputsOf(sum).slice(1);
    };
    expect(await callAgain(Infinity)).toEqual([[4, 5, 6]]);
    expect(await callAgain(0)).toEqual([[4], [5], [6]]);
  });

  it('keeps calls apart that differ in queue key or function', async () => {
    const partition = open();
    const [one, other] = [makeSum(), makeSum()];
    await Promise.all([
      partition.transactCombined(QUEUE_KEY, 1, one),
      partition.transactCombined(QUEUE_KEY, 2, other),
      partition.transactCombined(key('another'), 3, one),
    ]);
    for (const inputs of [...inputsOf(one), ...inputsOf(other)]) expect(inputs.length).toBe(1);
    expect(await get(partition, ROW)).toBe('6');
  });

  it('answers one call with an error, and the others of its run with their values', async () => {
    const partition = open();
    const sum = makeSum();
    const settled = await Promise.allSettled([1, -1, 2].map((n) => partition.transactCombined(QUEUE_KEY, n, sum)));
    expect(settled).toMatchObject([{ value: 1 }, { reason: { message: 'refused -1' } }, { value: 3 }]);
  });

  it('answers all calls with the error that the function throws', async () => {
    const partition = open();
    const failing: CombinedFunction<number, number> = {
      weightMax: 10,
      weight: () => 1,
      run: async () => {
        throw new Error('all');
      },
    };
    const settled = await Promise.allSettled([1, 2].map((n) => partition.transactCombined(QUEUE_KEY, n, failing)));
    expect(settled).toMatchObject([{ reason: { message: 'all' } }, { reason: { message: 'all' } }]);
    await partition.close();
  });

  it('leaves calls that come during a run to the next one, whose snapshot is later', async () => {
    const partition = open();
    const { promise, resolve } = gate();
    const sum = makeSum();
    const slow: typeof sum = {
      ...sum,
      async run(...given) {
        await promise;
        return sum.run(...given);
      },
    };
    const first = partition.transactCombined(QUEUE_KEY, 1, slow);
    await new Promise(setImmediate);
    const second = partition.transactCombined(QUEUE_KEY, 2, slow);
    resolve();
    expect(await Promise.all([first, second])).toEqual([1, 3]);
    expect(inputsOf(sum)).toEqual([[1], [2]]);
  });

  it('runs the same calls again after a conflict, and shows them the results that were lost', async () => {
    let conflicts = 1;
    let later: Promise<number> | undefined;
    const sum = makeSum();
    const partition = open(() => {
      if (conflicts-- <= 0) return undefined;
      // After the calls returned to their queue, and before they run again.
      setImmediate(() => {
        later = partition.transactCombined(QUEUE_KEY, 4, sum);
      });
      return 'conflict';
    });
    expect(await Promise.all([1, 2].map((n) => partition.transactCombined(QUEUE_KEY, n, sum)))).toEqual([1, 3]);
    expect(await later).toBe(7);
    expect(sum.runs).toEqual([
      { inputs: [1, 2], lost: undefined },
      { inputs: [1, 2], lost: [{ value: 1 }, { value: 3 }] },
      { inputs: [4], lost: undefined },
    ]);
  });

  it('combines calls only up to the weight', async () => {
    const partition = open();
    const sum = makeSum(3);
    const answers = await Promise.all(times(7, () => partition.transactCombined(QUEUE_KEY, 1, sum)));
    expect(answers).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(inputsOf(sum).map(({ length }) => length)).toEqual([3, 3, 1]);
  });

  it('answers every call with an unknown outcome, and does not run them again', async () => {
    const sum = makeSum();
    const partition = open(() => 'unknown');
    const settled = await Promise.allSettled([1, -1].map((n) => partition.transactCombined(QUEUE_KEY, n, sum)));
    for (const { reason } of settled as PromiseRejectedResult[]) expect(reason).toBeInstanceOf(OutcomeUnknown);
    expect(sum.runs.length).toBe(1);
  });
});
