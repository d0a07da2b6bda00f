/** Memory that this process may use, and the defaults of limits that are a share of it. */
import { totalmem } from 'node:os';

/** The memory of the machine, or of the container if it has less. Node reports 0, or more than any machine has, for an unlimited process. */
export function availableMemory(machine = totalmem(), container = process.constrainedMemory?.() ?? 0): number {
  return container > 0 && container < machine ? container : machine;
}

const MIB = 1 << 20;

/** Bytes of bodies in transit, in both directions: enough for some hundred uploads and downloads, and never most of the memory. */
export function defaultBodyBytesMax(available = availableMemory()): number {
  return Math.floor(Math.max(16 * MIB, Math.min(512 * MIB, available / 8)));
}

/** Bytes of data held in memory: half of the memory, as in the emulator. */
export function defaultMemoryBytesMax(available = availableMemory()): number {
  return Math.floor(available / 2);
}
