/** Memory that is given back at once. V8 leaves that to its collector, and runs it the more often the more such memory there is. */
import { MessageChannel } from 'node:worker_threads';

/** Closed, so that what is transferred there is gone. */
const { port1: nowhere } = new MessageChannel();
nowhere.close();

/** Empties those pieces that share their memory with nothing else. Whoever gives them here has no more use for them. */
export function freeAtOnce(pieces: readonly Uint8Array[]): void {
  const alone: ArrayBuffer[] = [];
  for (const { buffer, length } of pieces) {
    if (buffer instanceof ArrayBuffer && buffer.byteLength === length && length > 0) alone.push(buffer);
  }
  if (alone.length > 0) nowhere.postMessage(undefined, alone);
}
