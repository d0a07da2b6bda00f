/** Memory that is given back at once. V8 leaves that to its collector, and runs it the more often the more such memory there is. */
import { MessageChannel } from 'node:worker_threads';

/** Closed, so that what is transferred there is gone. */
const { port1: closedPort } = new MessageChannel();
closedPort.close();

/** Empties those pieces that share their memory with nothing else. Whoever gives them here has no more use for them. */
export function detachBuffers(pieces: readonly Uint8Array[]): void {
  const detachable: ArrayBuffer[] = [];
  for (const { buffer, length } of pieces) {
    if (buffer instanceof ArrayBuffer && buffer.byteLength === length && length > 0) detachable.push(buffer);
  }
  if (detachable.length > 0) closedPort.postMessage(undefined, detachable);
}
