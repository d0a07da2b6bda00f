/** One body that a thread hashes, as the owner of the thread sees it. */
import type { Hashes } from './hasher.ts';
import type { ABANDON, DIGEST } from './ring.ts';

export interface Waiter<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

export class HashJob {
  readonly number: number;
  readonly md5: boolean;
  /** Pieces that are not copied into the ring yet, and how many bytes of the first of them are. */
  readonly pieces: Uint8Array[] = [];
  copied = 0;
  /** Bytes that are copied and not hashed yet. */
  backlog = 0;
  /** To be sent after the last piece. */
  finalRecord: typeof DIGEST | typeof ABANDON | undefined;
  /** Calls of `update` whose pieces are not copied yet, and the call of `digest`. */
  readonly updates: Waiter<void>[] = [];
  result: Waiter<Hashes> | undefined;
  /** The error of all further calls. */
  failure: Error | undefined;

  constructor(number: number, md5: boolean, failure: Error | undefined) {
    this.number = number;
    this.md5 = md5;
    this.failure = failure;
  }

  addPieces(bytes: Uint8Array | readonly Uint8Array[]): void {
    for (const piece of bytes instanceof Uint8Array ? [bytes] : bytes) if (piece.length > 0) this.pieces.push(piece);
  }

  /** The next bytes are copied. */
  advance(length: number): void {
    this.backlog += length;
    this.copied += length;
    if (this.copied < this.pieces[0]!.length) return;
    this.pieces.shift();
    this.copied = 0;
  }

  /** Removes and returns all waiters. */
  takeWaiters(): Waiter<never>[] {
    const all = [...this.updates.splice(0), ...(this.result ? [this.result] : [])];
    this.result = undefined;
    return all;
  }
}
