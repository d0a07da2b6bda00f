import { setTimeout as pause } from 'node:timers/promises';

/** Work beside the requests: one run at a time, when it is woken and every so often. */
export interface Background {
  wake(): void;
  /** A pause, cut short when it is to stop. */
  rest(milliseconds: number): Promise<void>;
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
export function startBackground(run: () => Promise<void>, everyMilliseconds: number, onTimer?: () => void): Background {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  let again = false;

  async function runAll(): Promise<void> {
    while (again && !stopping.signal.aborted) {
      again = false;
      await run();
    }
  }

  const timer = setInterval(() => (onTimer ?? background.wake)(), everyMilliseconds).unref();
  const background: Background = {
    wake() {
      again = true;
      if (stopping.signal.aborted) return;
      running ??= runAll().finally(() => {
        running = undefined;
        if (again) background.wake();
      });
    },
    async rest(milliseconds) {
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
