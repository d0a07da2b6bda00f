/** What a process does for the store from time to time. */
import { CLEANUP_ROWS_MAX } from './functions.ts';

export interface PeriodicTask {
  /** Waits for the round that is under way. */
  end(): Promise<void>;
}

/** Starts a round every so often, unless the last one is still under way. A round that fails leaves its work to the next. */
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
 * Calls again while a call forgot a full portion: otherwise more rows than one portion a round would pile up for ever.
 * @param deleteExpired how many rows it removed from the table that had the most
 */
export async function deleteAllExpired(
  deleteExpired: () => Promise<number>,
  isClosing: () => boolean = () => false,
): Promise<void> {
  while ((await deleteExpired()) >= CLEANUP_ROWS_MAX && !isClosing());
}
