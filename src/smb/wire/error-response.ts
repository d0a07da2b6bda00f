/** MS-SMB2 2.2.2 */
import { type Of, padding, rest, struct, u8, u32 } from './struct.ts';

export const ErrorResponse = struct(9, {
  errorContextCount: u8,
  reserved: padding(1),
  byteCount: u32,
  /** One zero byte if there is no data. */
  errorData: rest,
});
export type ErrorResponse = Of<typeof ErrorResponse>;

const NO_DATA = Buffer.alloc(1);

/** @param data of the error; its context in dialect 3.1.1 has a head of its own */
export function errorResponse(data: Buffer | undefined, hasContexts: boolean): ErrorResponse {
  if (!data) return { errorContextCount: 0, byteCount: 0, errorData: NO_DATA };
  if (!hasContexts) return { errorContextCount: 0, byteCount: data.length, errorData: data };
  const head = Buffer.alloc(8);
  head.writeUInt32LE(data.length, 0);
  return { errorContextCount: 1, byteCount: head.length + data.length, errorData: Buffer.concat([head, data]) };
}
