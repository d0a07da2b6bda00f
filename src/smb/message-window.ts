/** Credits (MS-SMB2 3.3.1.1): the MessageIds that a client may use, each once; every answer grants more. */
import { WireError } from './wire/reader.ts';

export class MessageWindow {
  readonly #max: number;
  /** The window begins at the lowest id that was not used. */
  #low = 0n;
  /** Ids from `#low` on that were granted, used ones included. */
  #size = 1;
  readonly #used = new Set<bigint>();

  constructor(max: number) {
    this.#max = max;
  }

  /** The ids of one message: as many as its CreditCharge, at least one. */
  use(messageId: bigint, creditCharge: number): void {
    const end = messageId + BigInt(Math.max(1, creditCharge));
    if (messageId < this.#low || end > this.#low + BigInt(this.#size)) {
      throw new WireError(`MessageId ${messageId} with a charge of ${creditCharge} was not granted`);
    }
    for (let id = messageId; id < end; id += 1n) {
      if (this.#used.has(id)) throw new WireError(`MessageId ${id} was used before`);
      this.#used.add(id);
    }
    while (this.#used.delete(this.#low)) {
      this.#low += 1n;
      this.#size -= 1;
    }
  }

  /** How many of the wanted credits the client gets: at least one if its window allows any. */
  grant(wanted: number): number {
    const granted = Math.min(Math.max(1, wanted), this.#max - this.#size);
    this.#size += granted;
    return granted;
  }
}
