/** How much memory this process may use, and what share of it a bound takes that nobody has chosen. */
import { totalmem } from 'node:os';

/** That of the machine, or of the container if it has less. Node says 0, or more than any machine has, where nothing bounds the process. */
export function availableMemory(machine = totalmem(), container = process.constrainedMemory?.() ?? 0): number {
  return container > 0 && container < machine ? container : machine;
}

const MIB = 1 << 20;

/** Bytes of bodies on their way, in both directions: enough for some hundred uploads and downloads, and never most of what there is. */
export function defaultBodyBytesMax(available = availableMemory()): number {
  return Math.floor(Math.max(16 * MIB, Math.min(512 * MIB, available / 8)));
}

/** Data that is kept in memory: as the emulator does, half of what there is. */
export function defaultMemoryBytesMax(available = availableMemory()): number {
  return Math.floor(available / 2);
}
