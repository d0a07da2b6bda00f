/** Resource limits. Well-behaved clients stay far below them. */
import { StorageError } from '../../services/common/errors.ts';

export interface Limits {
  /** Further connections are closed when they are accepted. */
  readonly connectionsMax: number;
  /** From the start of a connection, or the first byte of a later request on it, to the end of the headers. */
  readonly headersMilliseconds: number;
  /** A client that sends or receives more slowly uses up its idle timeout. */
  readonly bytesPerSecondMin: number;
  /** Pipelined requests of one connection. At this number the connection is not read until half of them have their replies. */
  readonly pipelinedMax: number;
  /** Requests that run at once, and so commits that wait. Requests that are receiving or sending a body do not count. */
  readonly runningMax: number;
  /** Bytes in memory of the bodies of all connections, in both directions. */
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
  // The longest name has 9 KiB when all of it is percent-encoded, and List Blobs may have two: prefix and marker.
  urlBytesMax: 32 << 10,
};

/** The longest blob name, percent-encoded, and 8 KiB of metadata in many headers exceed Node's default of 16 KiB. */
export const HEADERS_BYTES_MAX = 64 << 10;

/** Has Retry-After; the clients of all SDKs retry. */
export function serverBusy(): StorageError {
  return new StorageError('ServerBusy', 503, 'The server is busy.', undefined, 1);
}
