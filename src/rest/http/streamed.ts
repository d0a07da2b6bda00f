/** Documents in pieces: few are there at once, many go out while the rest of them is made. */

export type Pieces = readonly Uint8Array[] | AsyncIterable<Uint8Array>;

/** Pieces of which some are there before they are asked for. */
export interface MadePieces extends AsyncIterableIterator<Uint8Array> {
  /** Bytes that are there and were not asked for yet. */
  waiting(): number;
  /** Whether more will be made. */
  isGrowing?(): boolean;
  /** Calls this whenever there are more, and when there will be none. */
  onMore?(heard: () => void): void;
}

export function isMade(pieces: AsyncIterable<Uint8Array>): pieces is MadePieces {
  return 'waiting' in pieces;
}

/** All of them, in slices. */
export function slicesOf(pieces: readonly Uint8Array[], sliceBytes: number): MadePieces {
  let waiting = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const slices = (async function* () {
    for (const piece of pieces) {
      for (let at = 0; at < piece.length; at += sliceBytes) {
        const slice = piece.subarray(at, at + sliceBytes);
        waiting -= slice.length;
        yield slice;
      }
    }
  })();
  return Object.assign(slices, { waiting: () => waiting });
}

/** So many that it pays to begin with them. */
const PIECES_TO_BEGIN = 2;

/**
 * What `make` gives until it ends. It is never kept waiting, since it may hold a snapshot: what the client has not taken yet waits
 * here, as it would if all of it went out at once.
 */
export async function asTheyCome(make: (give: (piece: Uint8Array) => void) => Promise<void>): Promise<Pieces> {
  const pieces: Uint8Array[] = [];
  let ended = false;
  let waiting = 0;
  let heard: () => void = () => {};
  let hearsOfMore: () => void = () => {};
  const making = make((piece) => {
    pieces.push(piece);
    waiting += piece.length;
    heard();
    hearsOfMore();
  }).finally(() => {
    ended = true;
    heard();
    hearsOfMore();
  });
  // Who takes the pieces hears of it.
  making.catch(() => {});
  const more = () =>
    new Promise<void>((resolve) => {
      heard = resolve;
    });
  while (!ended && pieces.length < PIECES_TO_BEGIN) await more();
  if (ended) {
    await making;
    return pieces;
  }
  const taken = (async function* () {
    for (;;) {
      const piece = pieces.shift();
      if (piece) {
        waiting -= piece.length;
        yield piece;
      } else if (!ended) await more();
      else break;
    }
    await making;
  })();
  const onMore = (hears: () => void) => {
    hearsOfMore = hears;
  };
  return Object.assign(taken, { waiting: () => waiting, isGrowing: () => !ended, onMore });
}

/** All of them, behind this one. */
export function behind(first: Uint8Array, pieces: Pieces): Pieces {
  if (!(Symbol.asyncIterator in pieces)) return [first, ...pieces];
  const all = (async function* () {
    yield first;
    yield* pieces;
  })();
  if (!isMade(pieces)) return all;
  const { waiting, isGrowing, onMore } = pieces;
  return Object.assign(all, { waiting, isGrowing, onMore });
}
