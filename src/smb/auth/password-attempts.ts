/**
 * A token bucket for each address: some passwords can be tried at once, then one in a while. A right password takes nothing of it. A client
 * learns whether the password is right only when its turn has come, so that neither many connections nor short ones make guessing faster.
 */
export interface PasswordAttemptsOptions {
  readonly attemptsAtOnce: number;
  readonly millisecondsEach: number;
}

/** Addresses that are remembered; with more, those with a full bucket are forgotten, then the least recently used. */
const ADDRESSES_MAX = 10_000;
/** A bound on the wait: the connection of the client ends before. */
const WAIT_MILLISECONDS_MAX = 60_000;

export class PasswordAttempts {
  readonly #options: PasswordAttemptsOptions;
  /** When the bucket of an address is full again. */
  readonly #fullAt = new Map<string, number>();

  constructor(options: PasswordAttemptsOptions) {
    this.#options = options;
  }

  /** Milliseconds that this attempt has to wait. */
  begin(address: string, now: number): number {
    const { attemptsAtOnce, millisecondsEach } = this.#options;
    const atOnce = attemptsAtOnce * millisecondsEach;
    const fullAt = Math.max(now, this.#fullAt.get(address) ?? 0) + millisecondsEach;
    this.#fullAt.delete(address);
    this.#fullAt.set(address, Math.min(fullAt, now + atOnce + WAIT_MILLISECONDS_MAX));
    if (this.#fullAt.size > ADDRESSES_MAX) this.#forget(now);
    return Math.max(0, fullAt - now - atOnce);
  }

  succeeded(address: string): void {
    const fullAt = this.#fullAt.get(address);
    if (fullAt !== undefined) this.#fullAt.set(address, fullAt - this.#options.millisecondsEach);
  }

  #forget(now: number): void {
    for (const [address, fullAt] of this.#fullAt) if (fullAt <= now) this.#fullAt.delete(address);
    for (const address of this.#fullAt.keys()) {
      if (this.#fullAt.size <= ADDRESSES_MAX) return;
      this.#fullAt.delete(address);
    }
  }
}
