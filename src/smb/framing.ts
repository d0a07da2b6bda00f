/** Direct TCP (MS-SMB2 2.1): every packet follows a zero byte and its length in three bytes. */
import { WireError } from './wire/reader.ts';

const PREFIX_BYTES = 4;

/** Collects the bytes of a connection into packets. A packet has memory of its own, which is never used again. */
export class FrameReader {
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  #prefixBytes = 0;
  /** The packet that is arriving. */
  #packet: Buffer | undefined;
  #packetBytes = 0;

  /** Whether bytes of an unfinished packet have arrived. */
  get isWithinPacket(): boolean {
    return this.#prefixBytes > 0;
  }

  /** Calls `onPacket` for each complete packet. @param bytesMax of a packet, asked when its length is known */
  push(bytes: Buffer, bytesMax: () => number, onPacket: (packet: Buffer) => void): void {
    let at = 0;
    while (at < bytes.length) {
      if (!this.#packet) {
        at += this.#copyPrefix(bytes, at);
        if (this.#prefixBytes < PREFIX_BYTES) return;
        this.#packet = Buffer.allocUnsafeSlow(this.#readLength(bytesMax()));
        this.#packetBytes = 0;
      }
      const count = bytes.copy(this.#packet, this.#packetBytes, at);
      this.#packetBytes += count;
      at += count;
      if (this.#packetBytes < this.#packet.length) return;
      const packet = this.#packet;
      this.#packet = undefined;
      this.#prefixBytes = 0;
      onPacket(packet);
    }
  }

  #copyPrefix(bytes: Buffer, at: number): number {
    const count = bytes.copy(this.#prefix, this.#prefixBytes, at);
    this.#prefixBytes += count;
    return count;
  }

  #readLength(bytesMax: number): number {
    const length = this.#prefix.readUIntBE(1, 3);
    if (this.#prefix[0] !== 0) throw new WireError('not a packet of Direct TCP');
    if (length < PREFIX_BYTES || length > bytesMax) throw new WireError(`a packet of ${length} bytes`);
    return length;
  }
}

/** The prefix and the parts of a packet, as buffers that follow each other. */
export function frame(parts: readonly Buffer[]): Buffer[] {
  const prefix = Buffer.allocUnsafe(PREFIX_BYTES);
  prefix.writeUInt32BE(parts.reduce((sum, { length }) => sum + length, 0));
  return [prefix, ...parts];
}
