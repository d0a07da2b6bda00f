/** Bounded output buffer for lists: flushed by items or by stored bytes, so that no event-loop turn is long. */

/** Escaped as XML, a slice is at most six times as long, which takes some 3 ms. A single item may be longer. */
export const SLICE_BYTES = 32 << 10;

export interface SliceBuffer<Item> {
  /** Before adding more, the caller flushes, and yields to the event loop. */
  isFull(): boolean;
  /** `bytes`: the stored length of the item. */
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
