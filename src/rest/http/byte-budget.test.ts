import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ByteBudget } from './byte-budget.ts';

const MIB = 1 << 20;
const PIECE = 64 << 10;
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Bodies that read a piece whenever the budget permits, for ever. */
function readers(count: number, budget = new ByteBudget(512 * MIB)) {
  const read: number[] = [];
  for (let body = 0; body < count; body++) {
    const readOn = () => {
      read.push(body);
      budget.chargeRead(PIECE);
      setImmediate(() => budget.whenReadable(readOn));
    };
    budget.whenReadable(readOn);
  }
  return { budget, read };
}

describe('A reservation', () => {
  it('is charged before its bytes arrive, and waits in order if it does not fit', async () => {
    const budget = new ByteBudget(16 * MIB);
    const order: string[] = [];
    expect([1, 2, 3].map(() => budget.reserve(4 * MIB))).toEqual([true, true, true]);
    expect(budget.bytesUsed()).toBe(12 * MIB);
    const waits = ['large', 'less'].map(async (name, at) => {
      expect(await budget.reserve((4 - 2 * at) * MIB)).toBe(true);
      order.push(name);
    });
    budget.add(-2 * MIB);
    await turn();
    expect(order).toEqual([]);
    budget.add(-4 * MIB);
    await Promise.all(waits);
    expect(order).toEqual(['large', 'less']);
    expect(budget.bytesUsed()).toBe(12 * MIB);
  });

  it('leaves space for small ones, until the budget is full', () => {
    const budget = new ByteBudget(16 * MIB);
    for (let at = 0; at < 3; at++) budget.reserve(4 * MIB);
    for (let at = 0; at < 64; at++) expect(budget.reserve(64 << 10)).toBe(true);
    expect(budget.reserve(1)).toBe(false);
  });

  it('may exceed the budget, if it is the only one', () => {
    const budget = new ByteBudget(MIB);
    expect(budget.reserve(4 * MIB)).toBe(true);
    expect(budget.reserve(1)).toBe(false);
  });

  it('is refused after ten seconds, or where too many wait, and then charges nothing', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const budget = new ByteBudget(16 * MIB);
    budget.add(16 * MIB);
    const waits = Array.from({ length: 1_024 }, () => budget.reserve(MIB));
    expect(budget.reserve(MIB)).toBe(false);
    vi.advanceTimersByTime(10_000);
    expect(new Set(await Promise.all(waits))).toEqual(new Set([false]));
    budget.add(-16 * MIB);
    expect(budget.bytesUsed()).toBe(0);
    expect(budget.reserve(MIB)).toBe(true);
  });
});

describe('Reading of bodies', () => {
  it('is limited to 2 MiB per turn of the event loop, in order', async () => {
    const { read } = readers(600);
    expect(read).toEqual(Array.from({ length: 32 }, (_, body) => body));
    for (let turns = 2; turns <= 18; turns++) {
      await turn();
      expect(read.length).toBe(32 * turns);
    }
    expect(new Set(read).size).toBe(576);
  });

  it('has to wait for the next turn once the bytes of a turn are read', async () => {
    const budget = new ByteBudget(512 * MIB);
    const mayContinue = Array.from({ length: 33 }, () => budget.chargeRead(PIECE));
    expect(mayContinue.indexOf(false)).toBe((2 * MIB) / PIECE - 1);
    await turn();
    expect(budget.chargeRead(PIECE)).toBe(true);
  });

  it('is limited to one piece in a turn that has accepted a connection', async () => {
    const { budget, read } = readers(600);
    for (let turns = 1; turns <= 20; turns++) {
      budget.connectionAccepted();
      await turn();
      expect(read.length).toBe(32 + turns);
    }
    await turn();
    expect(read.length).toBe(32 + 20 + 32);
  });

  it('waits while a quarter of the budget is read ahead, and continues when bytes are released', async () => {
    const budget = new ByteBudget(4 * MIB);
    const resume = vi.fn();
    budget.add(MIB, true);
    budget.whenReadable(resume);
    expect(budget.chargeRead(1)).toBe(false);
    await turn();
    expect(resume).not.toHaveBeenCalled();
    budget.add(-1, true);
    await turn();
    expect(resume).toHaveBeenCalledTimes(1);
    expect(budget.bytesUsed()).toBe(MIB - 1);
  });

  it('does not wait for bodies that are read whole', () => {
    const budget = new ByteBudget(4 * MIB);
    const resume = vi.fn();
    budget.add(2 * MIB);
    budget.whenReadable(resume);
    expect(resume).toHaveBeenCalledTimes(1);
  });

  it('continues one piece at a time, at intervals, where nothing is released', async () => {
    const budget = new ByteBudget(4 * MIB);
    budget.add(2 * MIB, true);
    await new Promise<void>((resolve) => budget.whenReadable(() => budget.whenReadable(resolve)));
    expect(budget.isFull()).toBe(false);
    budget.add(2 * MIB);
    expect(budget.isFull()).toBe(true);
  });
});
