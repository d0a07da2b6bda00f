/** Admission control: how many requests run at once, and which of them stream. */
import type { IncomingMessage } from 'node:http';

export class RunningRequests {
  readonly #max: number;
  /** Requests from arrival to their end, without those that are receiving a whole body. */
  #count = 0;
  /** Requests from the start of their body stream or reply stream to their end: they hold resources of the services. */
  readonly #streaming = new Set<IncomingMessage>();
  #onStreamsEnded = () => {};

  constructor(max: number) {
    this.#max = max;
  }

  /** Requests that wait for their clients do not count. */
  isFull(): boolean {
    return this.#count - this.#streaming.size >= this.#max;
  }

  begin(): void {
    this.#count++;
  }

  /** While a whole body is received, its request does not run. */
  suspend(): void {
    this.#count--;
  }

  resume(): void {
    this.#count++;
  }

  beginStreaming(incoming: IncomingMessage): void {
    this.#streaming.add(incoming);
  }

  end(incoming: IncomingMessage): void {
    this.#count--;
    if (this.#streaming.delete(incoming) && this.#streaming.size === 0) this.#onStreamsEnded();
  }

  /** Resolves when no request streams any more, at the latest after this time. */
  async streamsEnded(timeoutMilliseconds: number): Promise<void> {
    if (this.#streaming.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#onStreamsEnded = resolve;
      setTimeout(resolve, timeoutMilliseconds).unref();
    });
  }
}
