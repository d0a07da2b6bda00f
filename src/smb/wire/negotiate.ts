/** NEGOTIATE (MS-SMB2 2.2.3, 2.2.4) and its contexts. */
import { Reader, WireError } from './reader.ts';
import { bytes, type Of, padding, record, rest, struct, tail, u16, u32, u64 } from './struct.ts';
import { Writer } from './writer.ts';

/** MS-SMB2 2.2.3 */
export const NegotiateRequest = struct(36, {
  dialectCount: u16,
  securityMode: u16,
  reserved: padding(2),
  capabilities: u32,
  clientGuid: bytes(16),
  /** With dialect 3.1.1: where the contexts are in the message. */
  contextOffset: u32,
  contextCount: u16,
  reserved2: padding(2),
  /** The dialects, and the contexts after them. */
  buffer: rest,
});
export type NegotiateRequest = Of<typeof NegotiateRequest>;

/** MS-SMB2 2.2.4 */
export const NegotiateResponse = struct(65, {
  securityMode: u16,
  dialect: u16,
  contextCount: u16,
  serverGuid: bytes(16),
  capabilities: u32,
  maxTransactSize: u32,
  maxReadSize: u32,
  maxWriteSize: u32,
  systemTime: u64,
  serverStartTime: u64,
  securityBuffer: tail(2),
  contextOffset: u32,
  /** Padding and contexts, as `negotiateResponse` makes them. Read, it begins with the security buffer: `readContexts` goes by the offset. */
  contexts: rest,
});
export type NegotiateResponse = Of<typeof NegotiateResponse>;

export const SECURITY_MODE = { signingEnabled: 1, signingRequired: 2 } as const;

export const CAPABILITY = {
  dfs: 0x01,
  leasing: 0x02,
  largeMtu: 0x04,
  multiChannel: 0x08,
  persistentHandles: 0x10,
  directoryLeasing: 0x20,
  encryption: 0x40,
} as const;

export const CONTEXT_TYPE = { preauthIntegrity: 1, encryption: 2, signing: 8 } as const;

/** MS-SMB2 2.2.3.1 */
export interface NegotiateContext {
  readonly type: number;
  readonly data: Buffer;
}

const ContextHead = record({ type: u16, length: u16, reserved: padding(4) });

export function readDialects({ dialectCount, buffer }: NegotiateRequest): number[] {
  const reader = new Reader(buffer);
  return Array.from({ length: dialectCount }, () => reader.u16());
}

/** @param message the whole one, from its header on */
export function readContexts(
  message: Buffer,
  { contextOffset, contextCount }: Pick<NegotiateRequest, 'contextOffset' | 'contextCount'>,
): NegotiateContext[] {
  if (contextOffset % 8 !== 0) throw new WireError(`negotiate contexts at ${contextOffset}`);
  const reader = new Reader(message);
  reader.skip(contextOffset);
  return Array.from({ length: contextCount }, () => {
    reader.align(8);
    const { type, length } = ContextHead.read(reader, 0);
    return { type, data: reader.bytes(length) };
  });
}

function writeContexts(contexts: readonly NegotiateContext[]): Buffer {
  const writer = new Writer();
  for (const { type, data } of contexts) {
    writer.align(8);
    ContextHead.append(writer, { type, length: data.length });
    writer.bytes(data);
  }
  return writer.finish();
}

/** MS-SMB2 2.2.3.1.2, 2.2.3.1.7: the ids of ciphers or signing algorithms, the preferred one first. */
export function readAlgorithmIds(data: Buffer): number[] {
  const reader = new Reader(data);
  return Array.from({ length: reader.u16() }, () => reader.u16());
}

export function writeAlgorithmIds(ids: readonly number[]): Buffer {
  const writer = new Writer();
  for (const id of [ids.length, ...ids]) writer.u16(id);
  return writer.finish();
}

/** MS-SMB2 2.2.3.1.1: the ids of hash functions. */
export function readHashIds(data: Buffer): number[] {
  const reader = new Reader(data);
  const [count, saltLength] = [reader.u16(), reader.u16()];
  const ids = Array.from({ length: count }, () => reader.u16());
  reader.skip(saltLength);
  return ids;
}

export function writeHashIds(ids: readonly number[], salt: Buffer): Buffer {
  const writer = new Writer();
  for (const number of [ids.length, salt.length, ...ids]) writer.u16(number);
  writer.bytes(salt);
  return writer.finish();
}

const HEADER_BYTES = 64;

/** Puts the contexts at a multiple of 8 after the dialects. */
export function negotiateRequest(
  fields: Omit<NegotiateRequest, 'dialectCount' | 'contextCount' | 'contextOffset' | 'buffer'>,
  dialects: readonly number[],
  contexts: readonly NegotiateContext[],
): NegotiateRequest {
  const writer = new Writer();
  for (const dialect of dialects) writer.u16(dialect);
  const counts = { dialectCount: dialects.length, contextCount: contexts.length };
  if (contexts.length === 0) return { ...fields, ...counts, contextOffset: 0, buffer: writer.finish() };
  const fixed = HEADER_BYTES + NegotiateRequest.size;
  writer.zeros(-(fixed + writer.length) & 7);
  const contextOffset = fixed + writer.length;
  return { ...fields, ...counts, contextOffset, buffer: Buffer.concat([writer.finish(), writeContexts(contexts)]) };
}

/** Puts the contexts at a multiple of 8 after the security buffer. */
export function negotiateResponse(
  fields: Omit<NegotiateResponse, 'contextCount' | 'contextOffset' | 'contexts'>,
  contexts: readonly NegotiateContext[],
): NegotiateResponse {
  const empty = { ...fields, contextCount: contexts.length, contextOffset: 0, contexts: Buffer.alloc(0) };
  if (contexts.length === 0) return empty;
  const fixed = HEADER_BYTES + NegotiateResponse.size + fields.securityBuffer.length;
  const padding = -fixed & 7;
  return {
    ...empty,
    contextOffset: fixed + padding,
    contexts: Buffer.concat([Buffer.alloc(padding), writeContexts(contexts)]),
  };
}

/** MS-SMB2 2.2.31.4, 2.2.32.6 */
export const ValidateNegotiateRequest = record({
  capabilities: u32,
  guid: bytes(16),
  securityMode: u16,
  dialectCount: u16,
  dialects: rest,
});
export type ValidateNegotiateRequest = Of<typeof ValidateNegotiateRequest>;

export const ValidateNegotiateResponse = record({
  capabilities: u32,
  guid: bytes(16),
  securityMode: u16,
  dialect: u16,
});
export type ValidateNegotiateResponse = Of<typeof ValidateNegotiateResponse>;
