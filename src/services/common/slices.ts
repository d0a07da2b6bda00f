/** Lists are handed on in slices of few items and few stored bytes, so that what is made of one slice never takes long. */

/** Escaped as XML it is six times as much at most, which takes some 3 ms. One item may be longer by itself. */
export const SLICE_BYTES = 32 << 10;

export interface SliceBuffer<Item> {
  /** Whoever adds more ends this slice first, and leaves the event loop to others. */
  isFull(): boolean;
  /** `bytes`: as they are stored. */
  add(item: Item, bytes: number): void;
  flush(): void;
}

export function createSliceBuffer<Item>(emit: (items: readonly Item[]) => void, itemsMax: number): SliceBuffer<Item> {
  let items: Item[] = [];
  let length = 0;
  return {
    isFull: () => items.length >= itemsMax || length >= SLICE_BYTES,
    add(item, bytes) {
      items.push(item);
      length += bytes;
    },
    flush() {
      if (items.length > 0) emit(items);
      items = [];
      length = 0;
    },
  };
}
