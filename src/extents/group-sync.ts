/**
 * Group fsync: calls that arrive while a sync runs share the next one. The chunk writer calls it at the end of each chunk, so
 * that the bytes are durable before the commit that refers to them.
 */
export function groupSync(sync: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  return () => {
    next ??= running.then(() => {
      next = undefined;
      const now = sync();
      running = now.catch(() => {});
      return now;
    });
    return next;
  };
}
