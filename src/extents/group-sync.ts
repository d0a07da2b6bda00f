/** Who asks while a sync runs shares the next one with all others who do. */
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
