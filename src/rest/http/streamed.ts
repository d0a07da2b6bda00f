/** Documents in pieces: few are there at once, many go out while the rest of them is made. */

export type StreamedDocument = readonly Uint8Array[] | AsyncIterable<Uint8Array>;

/** Pieces of which some are there before they are asked for. */
export interface BufferedStream extends AsyncIterableIterator<Uint8Array> {
  /** Bytes that are there and were not asked for yet. */
  waiting(): number;
  /** Whether more will be made. */
  isGrowing?(): boolean;
  /** Calls this whenever there are more, and when there will be none. */
  onMore?(heard: () => void): void;
}

export function isBufferedStream(pieces: AsyncIterable<Uint8Array>): pieces is BufferedStream {
  return 'waiting' in pieces;
}

/** All of them, in slices. */
export function streamSlices(pieces: readonly Uint8Array[], sliceBytes: number): BufferedStream {
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
const PIECES_BEFORE_STREAMING = 2;

/**
 * What `make` gives until it ends. It is never kept waiting, since it may hold a snapshot: what the client has not taken yet waits
 * here, as it would if all of it went out at once.
 */
export async function streamAsProduced(
  produce: (emit: (piece: Uint8Array) => void) => Promise<void>,
): Promise<StreamedDocument> {
  const pieces: Uint8Array[] = [];
  let ended = false;
  let waiting = 0;
  let wake: () => void = () => {};
  let notifyListener: () => void = () => {};
  const producing = produce((piece) => {
    pieces.push(piece);
    waiting += piece.length;
    wake();
    notifyListener();
  }).finally(() => {
    ended = true;
    wake();
    notifyListener();
  });
  // Who takes the pieces hears of it.
  producing.catch(() => {});
  const waitForMore = () =>
    new Promise<void>((resolve) => {
      wake = resolve;
    });
  while (!ended && pieces.length < PIECES_BEFORE_STREAMING) await waitForMore();
  if (ended) {
    await producing;
    return pieces;
  }
  const stream = (async function* () {
    for (;;) {
      const piece = pieces.shift();
      if (piece) {
        waiting -= piece.length;
        yield piece;
      } else if (!ended) await waitForMore();
      else break;
    }
    await producing;
  })();
  const onMore = (hears: () => void) => {
    notifyListener = hears;
  };
  return Object.assign(stream, { waiting: () => waiting, isGrowing: () => !ended, onMore });
}

/** All of them, behind this one. */
export function prepend(first: Uint8Array, pieces: StreamedDocument): StreamedDocument {
  if (!(Symbol.asyncIterator in pieces)) return [first, ...pieces];
  const all = (async function* () {
    yield first;
    yield* pieces;
  })();
  if (!isBufferedStream(pieces)) return all;
  const { waiting, isGrowing, onMore } = pieces;
  return Object.assign(all, { waiting, isGrowing, onMore });
}
