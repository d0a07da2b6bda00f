/** Periodic background tasks: clock synchronisation, and deletion of expired commit ids and removed versions. */
import { CLEANUP_ROWS_MAX } from './functions.ts';

export interface PeriodicTask {
  /** Waits for the current run. */
  end(): Promise<void>;
}

/** Starts no run while the last one is not finished. A run that fails leaves its work to the next. */
export function startPeriodicTask(milliseconds: number, task: () => Promise<unknown>): PeriodicTask {
  let running: Promise<unknown> | undefined;
  const timer = setInterval(() => {
    running ??= task()
      .catch(() => {})
      .finally(() => {
        running = undefined;
      });
  }, milliseconds);
  timer.unref();
  return {
    async end() {
      clearInterval(timer);
      await running;
    },
  };
}

/**
 * Repeats while a call deleted as many rows as it may: otherwise a store that writes more rows per run would grow for ever.
 * @param deleteExpired returns the number of rows that it deleted from the table with the most
 */
export async function deleteAllExpired(
  deleteExpired: () => Promise<number>,
  isClosing: () => boolean = () => false,
): Promise<void> {
  while ((await deleteExpired()) >= CLEANUP_ROWS_MAX && !isClosing());
}
