/** Periodic background task: one run at a time, by timer or on demand. */
import { setTimeout as pause } from 'node:timers/promises';

export interface BackgroundTask {
  wake(): void;
  /** Ends early when the task is stopped. */
  sleep(milliseconds: number): Promise<void>;
  readonly isStopping: boolean;
  /** Resolves once nothing is running. */
  idle(): Promise<void>;
  /** Resolves after the current run. */
  stop(): Promise<void>;
}

/**
 * @param run is called again if the task was woken meanwhile
 * @param onTimer is called by the timer instead of `wake`
 */
export function startBackgroundTask(
  run: () => Promise<void>,
  everyMilliseconds: number,
  onTimer?: () => void,
): BackgroundTask {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  let isWoken = false;

  async function runAll(): Promise<void> {
    while (isWoken && !stopping.signal.aborted) {
      isWoken = false;
      await run();
    }
  }

  const timer = setInterval(() => (onTimer ?? background.wake)(), everyMilliseconds).unref();
  const background: BackgroundTask = {
    wake() {
      isWoken = true;
      if (stopping.signal.aborted) return;
      running ??= runAll().finally(() => {
        running = undefined;
        if (isWoken) background.wake();
      });
    },
    async sleep(milliseconds) {
      await pause(milliseconds, undefined, { signal: stopping.signal, ref: false }).catch(() => {});
    },
    get isStopping() {
      return stopping.signal.aborted;
    },
    async idle() {
      while (running) await running;
    },
    async stop() {
      clearInterval(timer);
      stopping.abort();
      await running;
    },
  };
  return background;
}
