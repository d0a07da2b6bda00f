/** How much of the server anyone may use at once. What honest clients need lies far below. */
import { StorageError } from '../../services/common/errors.ts';

export interface Limits {
  /** Further ones are closed as they come. */
  readonly connectionsMax: number;
  /** From the first moment of a connection, or the first byte of a further request on it, to the end of the headers. */
  readonly headersMilliseconds: number;
  /** Who sends or takes less than this uses up the time that it would have for silence. */
  readonly bytesPerSecondMin: number;
  /** Requests of one connection that wait for their answers; then it is not read from until half of them are answered. */
  readonly pipelinedMax: number;
  /** Requests that run at once, and so commits that wait. Those whose bodies are on their way are not among them. */
  readonly runningMax: number;
  /** Bytes of bodies, of both directions and all connections, that are in memory. */
  readonly bodyBytesMax: number;
  readonly urlBytesMax: number;
}

export const LIMITS: Limits = {
  connectionsMax: 10_000,
  headersMilliseconds: 20_000,
  // A modem is faster.
  bytesPerSecondMin: 256,
  pipelinedMax: 256,
  runningMax: 4_096,
  bodyBytesMax: 512 << 20,
  // The longest name is 9 KiB when all of it is percent-encoded, and List Blobs may have two of them: prefix and marker.
  urlBytesMax: 32 << 10,
};

/** The longest legal blob name, percent-encoded, and 8 KiB of metadata in many headers are more than Node's 16 KiB. */
export const HEADERS_BYTES_MAX = 64 << 10;

/** Comes with Retry-After; the clients of all SDKs try again. */
export function serverBusy(): StorageError {
  return new StorageError('ServerBusy', 503, 'The server is busy.', undefined, 1);
}
