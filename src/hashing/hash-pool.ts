/** MD5 and CRC64 of streamed bodies: short bodies are hashed in the calling thread, long ones in threads beside the event loop. */

import { createHasher, type Hashes } from './hasher.ts';
import { type HashThread, startHashThread } from './thread.ts';

export interface HashStream {
  /**
   * Adds the next bytes. Resolves once they are copied, which is the back-pressure: the caller must not change them before, and may
   * use their memory again afterwards.
   */
  update(bytes: Uint8Array | readonly Uint8Array[]): Promise<void>;
  /** The hashes of all bytes; the last call. */
  digest(): Promise<Hashes>;
  /** Ends the hashing without a result: calls that wait fail. No effect after `digest` has resolved. */
  abandon(): void;
}

export interface HashPool {
  /** `length`: the length of the body, if it is known. */
  begin(wants: { md5: boolean; length?: number }): HashStream;
  /** Running hashings fail. */
  close(): Promise<void>;
}

// Up to these lengths, hashing blocks the event loop for at most 0.2 ms, and a thread would cost more CPU; see bench/hashing.mjs.
const INLINE_BYTES_MAX = 256 << 10;
const INLINE_BYTES_MAX_MD5 = 64 << 10;

/** Threads are started when they are first needed, and replaced when they have ended. */
export function openHashPool({ threads = 1 }: { threads?: number } = {}): HashPool {
  const running: (HashThread | undefined)[] = Array.from({ length: threads });
  let closed = false;

  function leastLoaded(): HashThread {
    let best = 0;
    for (let i = 1; i < threads; i++) {
      if ((running[i]?.load() ?? 0) < (running[best]?.load() ?? 0)) best = i;
    }
    const thread =
      running[best] ??
      startHashThread(() => {
        running[best] = undefined;
      });
    running[best] = thread;
    return thread;
  }

  return {
    begin({ md5, length = Number.POSITIVE_INFINITY }) {
      if (closed) throw new Error('The hashers are closed');
      const isShort = length <= (md5 ? INLINE_BYTES_MAX_MD5 : INLINE_BYTES_MAX);
      return isShort ? hashInline({ md5 }) : leastLoaded().begin({ md5 });
    },
    async close() {
      closed = true;
      await Promise.all(running.map((each) => each?.stop()));
    },
  };
}

function hashInline(wants: { md5: boolean }): HashStream {
  const hasher = createHasher(wants);
  return {
    async update(bytes) {
      if (bytes instanceof Uint8Array) hasher.update(bytes);
      else for (const piece of bytes) hasher.update(piece);
    },
    digest: async () => hasher.digest(),
    abandon() {},
  };
}
