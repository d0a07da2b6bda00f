/** A sorted set of keys in blocks, as a B-tree of two levels: an insertion moves few keys. */
import type { Key, Range } from './keys.ts';

const BLOCK_MAX = 512;

export class SortedKeys {
  /** In order, and none of them empty. */
  readonly #blocks: Key[][] = [];

  add(key: Key): void {
    const at = Math.max(0, this.#findBlock(key));
    const block = this.#blocks[at];
    if (!block) {
      this.#blocks.push([key]);
      return;
    }
    const index = lowerBound(block, key);
    if (block[index] === key) return;
    block.splice(index, 0, key);
    if (block.length > BLOCK_MAX) this.#blocks.splice(at + 1, 0, block.splice(BLOCK_MAX / 2));
  }

  delete(key: Key): void {
    const at = this.#findBlock(key);
    const block = this.#blocks[at];
    if (!block) return;
    const index = lowerBound(block, key);
    if (block[index] !== key) return;
    block.splice(index, 1);
    if (block.length === 0) this.#blocks.splice(at, 1);
  }

  *in({ from, to }: Range, reverse = false): Iterable<Key> {
    if (reverse) {
      for (let at = this.#findBlock(to); at >= 0; at--) {
        const block = this.#blocks[at]!;
        for (let i = lowerBound(block, to) - 1; i >= 0; i--) {
          if (block[i]! < from) return;
          yield block[i]!;
        }
      }
      return;
    }
    for (let at = Math.max(0, this.#findBlock(from)); at < this.#blocks.length; at++) {
      const block = this.#blocks[at]!;
      for (let i = lowerBound(block, from); i < block.length; i++) {
        if (block[i]! >= to) return;
        yield block[i]!;
      }
    }
  }

  /** The last block that starts at or before the key; -1: every block starts after it. */
  #findBlock(key: Key): number {
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
