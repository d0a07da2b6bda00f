/** Structured messages by the checksums of Microsoft's own client, right ones and wrong ones. */
import { StorageCRC64Calculator } from '@azure/storage-common';

await StorageCRC64Calculator.init();

/** @param {Uint8Array} bytes */
export function crc64(bytes) {
  return Buffer.from(new StorageCRC64Calculator().final(bytes, bytes.length));
}

/** @param {number} value @param {number} bytes */
function littleEndian(value, bytes) {
  const field = Buffer.alloc(8);
  field.writeBigUInt64LE(BigInt(value));
  return field.subarray(0, bytes);
}

/**
 * @param {readonly Uint8Array[]} segments the content of each
 * @param {{ version?: number, length?: number, flags?: number, count?: number, numbers?: readonly number[] }} [wrong] fields of another value
 */
export function structuredMessage(segments, wrong = {}) {
  const content = Buffer.concat(segments);
  const body = segments.flatMap((segment, at) => [
    littleEndian(wrong.numbers?.[at] ?? at + 1, 2),
    littleEndian(segment.length, 8),
    segment,
    crc64(segment),
  ]);
  const length = 13 + body.reduce((sum, field) => sum + field.length, 0) + 8;
  return Buffer.concat([
    littleEndian(wrong.version ?? 1, 1),
    littleEndian(wrong.length ?? length, 8),
    littleEndian(wrong.flags ?? 1, 2),
    littleEndian(wrong.count ?? segments.length, 2),
    ...body,
    crc64(content),
  ]);
}

/** @param {number} contentLength */
export const structuredHeaders = (contentLength) => ({
  'x-ms-structured-body': 'XSM/1.0; properties=crc64',
  'x-ms-structured-content-length': String(contentLength),
});

/** @param {Uint8Array} content @param {number} bytes of each segment but the last */
export function segmentsOf(content, bytes) {
  const count = Math.max(1, Math.ceil(content.length / bytes));
  return Array.from({ length: count }, (_, at) => content.subarray(at * bytes, (at + 1) * bytes));
}
