/** The opens of a session, by their FileId, and their end. */
import type { FileOpen } from './file-open.ts';
import type { PipeOpen } from './pipe-open.ts';
import { SmbError } from './statuses.ts';
import type { FileId } from './wire/file-id.ts';

export interface OpenBase<Tree> {
  readonly fileId: FileId;
  readonly tree: Tree;
  /** Releases what the open holds; called once. */
  close(): Promise<void> | void;
}

export type Open = FileOpen | PipeOpen;

/** Of all sessions of a process: a FileId is never used twice. */
let lastId = 0n;

export class OpenTable {
  readonly #opens = new Map<bigint, Open>();
  readonly #max: number;
  /** Opens that are being made: they count, so that parallel CREATEs cannot exceed the limit. */
  #reserved = 0;
  #isEnded = false;
  readonly #endedTrees = new WeakSet<Open['tree']>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#opens.size;
  }

  /** Whether volatile rows stand for some of the opens, those that are being made included. */
  get holdsRows(): boolean {
    return (
      this.#reserved > 0 || [...this.#opens.values()].some((open) => open.kind === 'disk' && !open.isPreviousVersion)
    );
  }

  /** Gives the open its FileId and remembers it. */
  async add<O extends Open>(make: (fileId: FileId) => Promise<O> | O): Promise<O> {
    if (this.#opens.size + this.#reserved >= this.#max) throw new SmbError('TOO_MANY_OPENED_FILES');
    this.#reserved += 1;
    try {
      lastId += 1n;
      const open = await make({ persistent: lastId, volatile: lastId });
      if (this.#isEnded || this.#endedTrees.has(open.tree)) {
        await open.close();
        throw new SmbError(this.#isEnded ? 'USER_SESSION_DELETED' : 'NETWORK_NAME_DELETED');
      }
      this.#opens.set(open.fileId.volatile, open);
      return open;
    } finally {
      this.#reserved -= 1;
    }
  }

  /** Throws FILE_CLOSED. */
  get({ persistent, volatile }: FileId): Open {
    const open = this.#opens.get(volatile);
    if (open?.fileId.persistent !== persistent) throw new SmbError('FILE_CLOSED');
    return open;
  }

  /** Later messages do not find the open any more. */
  async close(open: Open): Promise<void> {
    if (this.#opens.delete(open.fileId.volatile)) await open.close();
  }

  /** Closes those of a tree, or all, also those that are being made. All are tried; the first failure is thrown. */
  async closeAll(tree?: Open['tree']): Promise<void> {
    if (tree) this.#endedTrees.add(tree);
    else this.#isEnded = true;
    const closing = [...this.#opens.values()].filter((open) => tree === undefined || open.tree === tree);
    const results = await Promise.allSettled(closing.map((open) => this.close(open)));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
  }
}
