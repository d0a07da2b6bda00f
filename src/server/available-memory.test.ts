import { describe, expect, it } from 'vitest';
import { availableMemory, defaultBodyBytesMax, defaultMemoryBytesMax } from './available-memory.ts';

const MIB = 1 << 20;
const GIB = 1 << 30;

describe('The available memory', () => {
  it.each([
    ['the machine has', 8 * GIB, 0, 8 * GIB],
    ['the container has', 8 * GIB, 256 * MIB, 256 * MIB],
    ['the machine has, where the container has no bound', 8 * GIB, 2 ** 64, 8 * GIB],
  ])('is what %s', (_, machine, container, available) => {
    expect(availableMemory(machine, container)).toBe(available);
  });

  it('is found on this machine', () => {
    expect(availableMemory()).toBeGreaterThan(0);
    expect(Number.isFinite(availableMemory())).toBe(true);
  });

  it.each([
    [64 * MIB, 16 * MIB],
    [256 * MIB, 32 * MIB],
    [2 * GIB, 256 * MIB],
    [64 * GIB, 512 * MIB],
  ])('of %i bytes leaves %i for bodies in transit', (available, bytes) => {
    expect(defaultBodyBytesMax(available)).toBe(bytes);
  });

  it('is left to data in memory by half', () => {
    expect(defaultMemoryBytesMax(GIB)).toBe(GIB / 2);
  });
});
