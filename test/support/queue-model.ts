/** A queue as an array, by which the real one is judged. Time is in seconds, and moves only when it is moved. */
export interface ModelMessage {
  readonly id: string;
  readonly order: number;
  readonly expires: number;
  text: string;
  dequeueCount: number;
  visibleAt: number;
  /** When it came to its place. */
  moved: number;
  receipt: string;
}

export class QueueModel {
  now = 0;
  messages: ModelMessage[] = [];
  /** Receipts that were good once, of whatever message. */
  readonly stale: { id: string; receipt: string }[] = [];
  #steps = 0;

  put(id: string, receipt: string, text: string, visibility: number, ttl: number): void {
    const order = ++this.#steps;
    const expires = ttl === -1 ? Infinity : this.now + ttl;
    const place = { visibleAt: this.now + visibility, moved: order };
    this.messages.push({ id, order, expires, text, dequeueCount: 0, receipt, ...place });
  }

  visible(count: number): ModelMessage[] {
    return this.living()
      .filter(({ visibleAt }) => visibleAt <= this.now)
      .sort((a, b) => a.visibleAt - b.visibleAt || a.moved - b.moved || a.order - b.order)
      .slice(0, count);
  }

  living(): ModelMessage[] {
    return this.messages.filter(({ expires }) => expires > this.now);
  }

  take(count: number, visibility: number): ModelMessage[] {
    const taken = this.visible(count);
    const moved = ++this.#steps;
    for (const message of taken) {
      this.stale.push({ id: message.id, receipt: message.receipt });
      Object.assign(message, { visibleAt: this.now + visibility, moved, dequeueCount: message.dequeueCount + 1 });
    }
    return taken;
  }

  /** By its latest receipt, if it has not expired. */
  held(id: string, receipt: string): ModelMessage | undefined {
    return this.living().find((message) => message.id === id && message.receipt === receipt);
  }

  move(message: ModelMessage, receipt: string, visibility: number, text = message.text): void {
    this.stale.push({ id: message.id, receipt: message.receipt });
    Object.assign(message, { visibleAt: this.now + visibility, moved: ++this.#steps, receipt, text });
  }

  remove({ id, receipt }: { id: string; receipt: string }): void {
    this.messages = this.messages.filter((message) => message.id !== id);
    this.stale.push({ id, receipt });
  }

  clear(): void {
    for (const { id, receipt } of this.messages) this.stale.push({ id, receipt });
    this.messages = [];
  }
}
