/**
 * A sorted set of keys in blocks, as a B-tree of two levels: an insertion moves few keys. New keys are sorted by the next scan: many at once
 * cost less, and many are deleted before.
 */
import type { Key, Range } from './keys.ts';

const BLOCK_MAX = 512;
/** A scan sorts at most this many. */
const UNSORTED_MAX = 512;

export class SortedKeys {
  /** In order, and none of them empty. */
  readonly #blocks: Key[][] = [];
  readonly #unsorted = new Set<Key>();

  /** @param key that is not in the set */
  add(key: Key): void {
    this.#unsorted.add(key);
    if (this.#unsorted.size >= UNSORTED_MAX) this.#sort();
  }

  delete(key: Key): void {
    if (this.#unsorted.delete(key)) return;
    const at = this.#findBlock(key);
    const block = this.#blocks[at];
    if (!block) return;
    const index = lowerBound(block, key);
    if (block[index] !== key) return;
    block.splice(index, 1);
    if (block.length === 0) this.#blocks.splice(at, 1);
  }

  *in({ from, to }: Range, reverse = false): Iterable<Key> {
    this.#sort();
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

  #sort(): void {
    if (this.#unsorted.size === 0) return;
    for (const key of [...this.#unsorted].sort()) this.#insert(key);
    this.#unsorted.clear();
  }

  #insert(key: Key): void {
    const at = Math.max(0, this.#findBlock(key));
    const block = this.#blocks[at];
    if (!block) {
      this.#blocks.push([key]);
      return;
    }
    block.splice(lowerBound(block, key), 0, key);
    if (block.length > BLOCK_MAX) this.#blocks.splice(at + 1, 0, block.splice(BLOCK_MAX / 2));
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
