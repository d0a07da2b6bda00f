import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createByteBudget } from './byte-budget.ts';

const MIB = 1 << 20;
const PIECE = 64 << 10;
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Bodies that read a piece whenever they may, for ever. */
function readers(count: number, memory = createByteBudget(512 * MIB)) {
  const read: number[] = [];
  for (let body = 0; body < count; body++) {
    const readOn = () => {
      read.push(body);
      memory.chargeRead(PIECE);
      setImmediate(() => memory.whenReadable(readOn));
    };
    memory.whenReadable(readOn);
  }
  return { memory, read };
}

describe('What is reserved', () => {
  it('counts before any of it is there, and what is larger than the room waits in its order', async () => {
    const memory = createByteBudget(16 * MIB);
    const order: string[] = [];
    expect([1, 2, 3].map(() => memory.reserve(4 * MIB))).toEqual([true, true, true]);
    expect(memory.bytesUsed()).toBe(12 * MIB);
    const waits = ['large', 'less'].map(async (name, at) => {
      expect(await memory.reserve((4 - 2 * at) * MIB)).toBe(true);
      order.push(name);
    });
    memory.add(-2 * MIB);
    await turn();
    expect(order).toEqual([]);
    memory.add(-4 * MIB);
    await Promise.all(waits);
    expect(order).toEqual(['large', 'less']);
    expect(memory.bytesUsed()).toBe(12 * MIB);
  });

  it('leaves room for what is small, until all is full', () => {
    const memory = createByteBudget(16 * MIB);
    for (let at = 0; at < 3; at++) memory.reserve(4 * MIB);
    for (let at = 0; at < 64; at++) expect(memory.reserve(64 << 10)).toBe(true);
    expect(memory.reserve(1)).toBe(false);
  });

  it('may be more than there is, if that is all', () => {
    const memory = createByteBudget(MIB);
    expect(memory.reserve(4 * MIB)).toBe(true);
    expect(memory.reserve(1)).toBe(false);
  });

  it('is refused after ten seconds, or where too many wait, and then counts nothing', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const memory = createByteBudget(16 * MIB);
    memory.add(16 * MIB);
    const waits = Array.from({ length: 1_024 }, () => memory.reserve(MIB));
    expect(memory.reserve(MIB)).toBe(false);
    vi.advanceTimersByTime(10_000);
    expect(new Set(await Promise.all(waits))).toEqual(new Set([false]));
    memory.add(-16 * MIB);
    expect(memory.bytesUsed()).toBe(0);
    expect(memory.reserve(MIB)).toBe(true);
  });
});

describe('Bodies that are read', () => {
  it('share 2 MiB in one turn of the event loop, in their order', async () => {
    const { read } = readers(600);
    expect(read).toEqual(Array.from({ length: 32 }, (_, body) => body));
    for (let turns = 2; turns <= 18; turns++) {
      await turn();
      expect(read.length).toBe(32 * turns);
    }
    expect(new Set(read).size).toBe(576);
  });

  it('have one piece in a turn that has accepted a connection, and their share again behind the last', async () => {
    const { memory, read } = readers(600);
    for (let turns = 1; turns <= 20; turns++) {
      memory.connectionAccepted();
      await turn();
      expect(read.length).toBe(32 + turns);
    }
    await turn();
    expect(read.length).toBe(32 + 20 + 32);
  });

  it('wait for room while a quarter of the memory is on its way to the disk, and go on when it is given back', async () => {
    const memory = createByteBudget(4 * MIB);
    const resume = vi.fn();
    memory.add(MIB, true);
    memory.whenReadable(resume);
    expect(memory.chargeRead(1)).toBe(false);
    await turn();
    expect(resume).not.toHaveBeenCalled();
    memory.add(-1, true);
    await turn();
    expect(resume).toHaveBeenCalledTimes(1);
    expect(memory.bytesUsed()).toBe(MIB - 1);
  });

  it('do not wait for those that are kept', () => {
    const memory = createByteBudget(4 * MIB);
    const resume = vi.fn();
    memory.add(2 * MIB);
    memory.whenReadable(resume);
    expect(resume).toHaveBeenCalledTimes(1);
  });

  it('come in one by one, now and then, where nothing is given back', async () => {
    const memory = createByteBudget(4 * MIB);
    memory.add(2 * MIB, true);
    await new Promise<void>((resolve) => memory.whenReadable(() => memory.whenReadable(resolve)));
    expect(memory.isFull()).toBe(false);
    memory.add(2 * MIB);
    expect(memory.isFull()).toBe(true);
  });
});
