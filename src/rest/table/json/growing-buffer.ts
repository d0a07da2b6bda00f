/** An append-only buffer of ASCII. */
export interface GrowingBuffer {
  bytes: Buffer;
  at: number;
}

export function appendText(output: GrowingBuffer, text: string): void {
  reserve(output, text.length);
  output.at += output.bytes.write(text, output.at, 'latin1');
}

/** Takes a fraction of the time of `appendText`. */
export function appendBytes(output: GrowingBuffer, text: Buffer): void {
  reserve(output, text.length);
  output.bytes.set(text, output.at);
  output.at += text.length;
}

export function reserve(output: GrowingBuffer, bytes: number): void {
  if (output.at + bytes <= output.bytes.length) return;
  const larger = Buffer.allocUnsafe(2 * (output.at + bytes));
  output.bytes.copy(larger, 0, 0, output.at);
  output.bytes = larger;
}
