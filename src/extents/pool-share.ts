/**
 * A share of libuv's thread pool, which all file operations of the process go through, and a commit's sync of the write-ahead log with
 * them: slow writes and syncs of extents must leave it a thread.
 */
const POOL_THREADS = Number(process.env.UV_THREADPOOL_SIZE) || 4;

export interface PoolShare {
  run<Value>(work: () => Promise<Value>): Promise<Value>;
}

/** One thread less than there are. The others wait here, in their order. */
export function createPoolShare(threads = Math.max(1, POOL_THREADS - 1)): PoolShare {
  const waiting: (() => void)[] = [];
  let free = threads;
  return {
    async run(work) {
      if (free > 0) free--;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        return await work();
      } finally {
        const next = waiting.shift();
        if (next) next();
        else free++;
      }
    },
  };
}
