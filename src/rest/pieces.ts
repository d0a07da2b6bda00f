/** Documents in pieces: few are there at once, many go out while the rest of them is made. */

export type Pieces = readonly Uint8Array[] | AsyncIterable<Uint8Array>;

/** So many that it pays to begin with them. */
const PIECES_TO_BEGIN = 2;

/**
 * What `make` gives until it ends. It is never kept waiting, since it may hold a snapshot: what the client has not taken yet waits
 * here, as it would if all of it went out at once.
 */
export async function asTheyCome(make: (give: (piece: Uint8Array) => void) => Promise<void>): Promise<Pieces> {
  const pieces: Uint8Array[] = [];
  let ended = false;
  let heard: () => void = () => {};
  const making = make((piece) => {
    pieces.push(piece);
    heard();
  }).finally(() => {
    ended = true;
    heard();
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
  return (async function* () {
    for (;;) {
      const piece = pieces.shift();
      if (piece) yield piece;
      else if (!ended) await more();
      else break;
    }
    await making;
  })();
}

/** All of them, behind this one. */
export function behind(first: Uint8Array, pieces: Pieces): Pieces {
  if (!(Symbol.asyncIterator in pieces)) return [first, ...pieces];
  return (async function* () {
    yield first;
    yield* pieces;
  })();
}
