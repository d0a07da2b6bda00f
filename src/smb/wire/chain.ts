/** Lists whose entries begin with the distance to the next one: create contexts, directory entries, network interfaces. */
import { WireError } from './reader.ts';

/** The bytes of each entry, with its own first field; at most `max` entries. */
export function readChain(list: Buffer, { minimum, max }: { minimum: number; max: number }): Buffer[] {
  const entries: Buffer[] = [];
  let start = 0;
  while (list.length > 0) {
    if (entries.length === max) throw new WireError(`a list of more than ${max} entries`);
    if (list.length - start < minimum) throw new WireError('an entry of a list is cut off');
    const next = list.readUInt32LE(start);
    if (next === 0) {
      entries.push(list.subarray(start));
      break;
    }
    if (next < minimum || start + next > list.length) throw new WireError(`an entry of a list points ${next} bytes on`);
    entries.push(list.subarray(start, start + next));
    start += next;
  }
  return entries;
}

/** Each entry begins with four bytes for the distance; every entry but the last is padded. */
export function writeChain(entries: readonly Buffer[], align = 8): Buffer {
  const parts: Buffer[] = [];
  for (const [index, entry] of entries.entries()) {
    const isLast = index === entries.length - 1;
    const padded = isLast ? entry.length : Math.ceil(entry.length / align) * align;
    const part = Buffer.alloc(padded);
    entry.copy(part);
    part.writeUInt32LE(isLast ? 0 : padded, 0);
    parts.push(part);
  }
  return Buffer.concat(parts);
}
