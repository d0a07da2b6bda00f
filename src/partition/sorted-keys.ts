import type { Key, Range } from './keys.ts';

const BLOCK_MAX = 512;

/** Keys in order, in short blocks, so that an insertion moves few of them. */
export class SortedKeys {
  readonly #blocks: Key[][] = [];

  add(key: Key): void {
    const at = Math.max(0, this.#blockOf(key));
    const block = this.#blocks[at];
    if (!block) {
      this.#blocks.push([key]);
      return;
    }
    const place = lowerBound(block, key);
    if (block[place] === key) return;
    block.splice(place, 0, key);
    if (block.length > BLOCK_MAX) this.#blocks.splice(at + 1, 0, block.splice(BLOCK_MAX / 2));
  }

  delete(key: Key): void {
    const at = this.#blockOf(key);
    const block = this.#blocks[at];
    if (!block) return;
    const place = lowerBound(block, key);
    if (block[place] !== key) return;
    block.splice(place, 1);
    if (block.length === 0) this.#blocks.splice(at, 1);
  }

  *in({ from, to }: Range, reverse = false): Iterable<Key> {
    if (reverse) {
      for (let at = this.#blockOf(to); at >= 0; at--) {
        const block = this.#blocks[at]!;
        for (let i = lowerBound(block, to) - 1; i >= 0; i--) {
          if (block[i]! < from) return;
          yield block[i]!;
        }
      }
      return;
    }
    for (let at = Math.max(0, this.#blockOf(from)); at < this.#blocks.length; at++) {
      const block = this.#blocks[at]!;
      for (let i = lowerBound(block, from); i < block.length; i++) {
        if (block[i]! >= to) return;
        yield block[i]!;
      }
    }
  }

  /** The last block that begins at or before the key; -1: every block begins behind it. */
  #blockOf(key: Key): number {
    let low = 0;
    let high = this.#blocks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#blocks[middle]![0]! <= key) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}

function lowerBound(keys: readonly Key[], key: Key): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keys[middle]! < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
