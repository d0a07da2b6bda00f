/** MD5 and CRC64 of bodies that come in pieces: short ones on the spot, long ones in threads beside the event loop. */

import { createHasher, type Hashes } from './hasher.ts';
import { type HashThread, startHashThread } from './thread.ts';

export interface HashStream {
  /**
   * Takes the next bytes; resolves once they are copied, which is when there is room for more.
   * They must not be changed until then, and are the caller's again afterwards.
   */
  update(bytes: Uint8Array | readonly Uint8Array[]): Promise<void>;
  /** Of all bytes so far. It is the last call. */
  digest(): Promise<Hashes>;
  /** The rest will not come. Who still waits for an answer gets an error; after `digest` has answered it does nothing. */
  abandon(): void;
}

export interface HashPool {
  /** `length`: how long the body will be, if that is known. */
  begin(wants: { md5: boolean; length?: number }): HashStream;
  /** Hashings that are under way fail. */
  close(): Promise<void>;
}

// Up to here hashing on the spot keeps the event loop for 0.2 ms at most, and costs the machine less; see bench/hashing.mjs.
export const INLINE_BYTES_MAX = 256 << 10;
export const INLINE_BYTES_MAX_MD5 = 64 << 10;

/** Threads start when they are first needed, and are replaced when they die. */
export function openHashPool({ threads = 1 }: { threads?: number } = {}): HashPool {
  const running: (HashThread | undefined)[] = Array.from({ length: threads });
  let closed = false;

  function leastLoaded(): HashThread {
    let best = 0;
    for (let i = 1; i < threads; i++) {
      if ((running[i]?.load() ?? 0) < (running[best]?.load() ?? 0)) best = i;
    }
    const chosen =
      running[best] ??
      startHashThread(() => {
        running[best] = undefined;
      });
    running[best] = chosen;
    return chosen;
  }

  return {
    begin({ md5, length = Number.POSITIVE_INFINITY }) {
      if (closed) throw new Error('The hashers are closed');
      const short = length <= (md5 ? INLINE_BYTES_MAX_MD5 : INLINE_BYTES_MAX);
      return short ? hashInline({ md5 }) : leastLoaded().begin({ md5 });
    },
    async close() {
      closed = true;
      await Promise.all(running.map((each) => each?.stop()));
    },
  };
}

function hashInline(wants: { md5: boolean }): HashStream {
  const hashes = createHasher(wants);
  return {
    async update(bytes) {
      if (bytes instanceof Uint8Array) hashes.update(bytes);
      else for (const piece of bytes) hashes.update(piece);
    },
    digest: async () => hashes.digest(),
    abandon() {},
  };
}
