/** Streamed documents: short ones as arrays of pieces, long ones sent while the rest is produced. */

/** Of a reply that is in memory as a whole, this much is handed to the system at once. */
export const SLICE_BYTES = 64 << 10;

export type StreamedDocument = readonly Uint8Array[] | AsyncIterable<Uint8Array>;

/** A stream of which some pieces are in memory before they are pulled. */
export interface BufferedStream extends AsyncIterableIterator<Uint8Array> {
  /** Bytes that are in memory and were not pulled yet. */
  bufferedBytes(): number;
  /** Whether more will be produced. */
  isProducing?(): boolean;
  /** Calls the listener after each piece that is produced, and at the end. */
  onProduced?(listener: () => void): void;
}

export function isBufferedStream(pieces: AsyncIterable<Uint8Array>): pieces is BufferedStream {
  return 'bufferedBytes' in pieces;
}

/** All bytes of the pieces, in slices of at most `sliceBytes`. */
export function streamSlices(pieces: readonly Uint8Array[], sliceBytes: number): BufferedStream {
  let buffered = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const slices = (async function* () {
    for (const piece of pieces) {
      for (let at = 0; at < piece.length; at += sliceBytes) {
        const slice = piece.subarray(at, at + sliceBytes);
        buffered -= slice.length;
        yield slice;
      }
    }
  })();
  return Object.assign(slices, { bufferedBytes: () => buffered });
}

/** A document with fewer pieces is an array. */
const PIECES_BEFORE_STREAMING = 2;

/**
 * The pieces that `produce` emits, in order. The producer never waits for the client, since it may hold a snapshot: pieces that the client
 * has not received yet are buffered here, as they would be if the document were sent as a whole.
 */
export async function streamAsProduced(
  produce: (emit: (piece: Uint8Array) => void) => Promise<void>,
): Promise<StreamedDocument> {
  const pieces: Uint8Array[] = [];
  let ended = false;
  let buffered = 0;
  let wake: () => void = () => {};
  let notifyListener: () => void = () => {};
  const producing = produce((piece) => {
    pieces.push(piece);
    buffered += piece.length;
    wake();
    notifyListener();
  }).finally(() => {
    ended = true;
    wake();
    notifyListener();
  });
  // A failure is thrown where the pieces are pulled.
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
        buffered -= piece.length;
        yield piece;
      } else if (!ended) await waitForMore();
      else break;
    }
    await producing;
  })();
  const onProduced = (listener: () => void) => {
    notifyListener = listener;
  };
  return Object.assign(stream, { bufferedBytes: () => buffered, isProducing: () => !ended, onProduced });
}

/** All pieces of the document, after the first one given here. */
export function prepend(first: Uint8Array, pieces: StreamedDocument): StreamedDocument {
  if (!(Symbol.asyncIterator in pieces)) return [first, ...pieces];
  const all = (async function* () {
    yield first;
    yield* pieces;
  })();
  if (!isBufferedStream(pieces)) return all;
  const { bufferedBytes, isProducing, onProduced } = pieces;
  return Object.assign(all, { bufferedBytes, isProducing, onProduced });
}
