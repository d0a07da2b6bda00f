/** How late timers are: as late as a request would be that arrived at the same moment. */
import { Histogram, SECONDS_BOUNDS } from '../base/histogram.ts';

const EVERY_MILLISECONDS = 50;

export class EventLoopDelay {
  readonly seconds = new Histogram(SECONDS_BOUNDS);
  #timer: NodeJS.Timeout | undefined;

  /** Only a server that is asked for its metrics pays for the timer. */
  start(): void {
    if (this.#timer) return;
    let last = performance.now();
    this.#timer = setInterval(() => {
      const now = performance.now();
      this.seconds.observe(Math.max(0, now - last - EVERY_MILLISECONDS) / 1_000);
      last = now;
    }, EVERY_MILLISECONDS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
