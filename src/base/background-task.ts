import { setTimeout as pause } from 'node:timers/promises';

/** Work beside the requests: one run at a time, when it is woken and every so often. */
export interface BackgroundTask {
  wake(): void;
  /** A pause, cut short when it is to stop. */
  sleep(milliseconds: number): Promise<void>;
  readonly isStopping: boolean;
  /** Resolves once no run is under way. */
  idle(): Promise<void>;
  /** Waits for the run that is under way. */
  stop(): Promise<void>;
}

/**
 * @param run is called again as long as it was woken meanwhile
 * @param onTimer what happens every so often, if it is more than to be woken
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
