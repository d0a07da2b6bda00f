/** Admission of connections: their number is limited for all services of a process together. */
export class ConnectionLimit {
  readonly max: number;
  #count = 0;

  constructor(max: number) {
    this.max = max;
  }

  /** Whether there is room for one more, which then counts until `remove`. */
  tryAdd(): boolean {
    if (this.#count >= this.max) return false;
    this.#count++;
    return true;
  }

  remove(): void {
    this.#count--;
  }
}
