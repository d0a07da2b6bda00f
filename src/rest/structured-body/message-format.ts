/**
 * The structured message of Azure Storage, version 1: a header, segments of the content with a CRC64 after each, and the CRC64 of the whole
 * content. All numbers are little-endian. "Structured Body Format" in the REST reference.
 */

export const VERSION = 1;
/** The only flag of version 1. */
export const CRC64_FLAG = 1;
/** u8 version, u64 length of the message, u16 flags, u16 number of segments. */
export const HEADER_BYTES = 13;
/** u16 number of the segment, from 1 on, u64 length of its content. */
export const SEGMENT_HEADER_BYTES = 10;
export const CRC64_BYTES = 8;
export const SEGMENTS_MAX = 0xffff;

/** How much longer than its content a message is. */
export function overheadBytes(segments: number): number {
  return HEADER_BYTES + segments * (SEGMENT_HEADER_BYTES + CRC64_BYTES) + CRC64_BYTES;
}
