/** Bytes that a caller sends, on their way into a service. */
import { commonErrors, errorFactory } from './errors.ts';

const fail = errorFactory(commonErrors);

/** Base64, in the one form that a calculated hash has. */
export interface Hashes {
  readonly md5?: string | undefined;
  readonly crc64?: string | undefined;
}

export interface SentContent {
  /** Just so many bytes come, or the stream fails. */
  readonly length: number;
  /** What the caller says of them. Who reads the bytes holds them against it: `checkHashes`. */
  readonly expected: Hashes;
  /** All of them, if they are few. */
  readonly whole?: Buffer;
  /** All of them, as they come; the caller is read from only as they are asked for. To be called once. */
  bytes(): AsyncIterable<Uint8Array>;
}

/** Up to this length a content is read before its operation begins. */
export const WHOLE_BYTES_MAX = 16 * 1024;

/** Whatever is expected must have been calculated. */
export function checkHashes(expected: Hashes, found: Hashes): void {
  const { md5, crc64 } = expected;
  if (md5 !== undefined && md5 !== found.md5) {
    throw fail('Md5Mismatch', { UserSpecifiedMd5: md5, ServerCalculatedMd5: String(found.md5) });
  }
  if (crc64 !== undefined && crc64 !== found.crc64) {
    throw fail('Crc64Mismatch', { UserSpecifiedCrc64: crc64, ServerCalculatedCrc64: String(found.crc64) });
  }
}
