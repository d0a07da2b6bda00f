/**
 * Detaches ArrayBuffers, which frees their memory at once. Otherwise it waits for V8's garbage collector, which runs more often the more
 * such memory there is.
 */
import { MessageChannel } from 'node:worker_threads';

/** Closed: buffers that are transferred to this port are freed. */
const { port1: closedPort } = new MessageChannel();
closedPort.close();

/** Detaches the pieces that do not share their memory with others. The caller must not use the pieces any more. */
export function detachBuffers(pieces: readonly Uint8Array[]): void {
  const detachable: ArrayBuffer[] = [];
  for (const { buffer, length } of pieces) {
    if (buffer instanceof ArrayBuffer && buffer.byteLength === length && length > 0) detachable.push(buffer);
  }
  if (detachable.length > 0) closedPort.postMessage(undefined, detachable);
}
