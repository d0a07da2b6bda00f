/** Logs the first of many equal events, and the next one only after a minute without any: a full disk must not fill itself with lines. */
export class EpisodeLog {
  readonly #now: () => number;
  #lastAt = -Infinity;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  happened(logIt: () => void): void {
    const time = this.#now();
    const isNew = time - this.#lastAt >= QUIET_MILLISECONDS;
    this.#lastAt = time;
    if (isNew) logIt();
  }
}

const QUIET_MILLISECONDS = 60_000;
