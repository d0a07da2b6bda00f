/** Bodies of requests: read whole and bounded, or let go. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { commonErrors, raising } from '../services/errors.ts';
import type { BodyReader, Request } from './operation.ts';

const fail = raising(commonErrors);

/** What remains of a refused body up to this size is read and dropped; behind a larger one the connection ends. */
const DROP_BYTES_MAX = 256 * 1024;
const LINGER_MILLISECONDS = 2_000;

/** The caller went away: there is nobody to answer. */
export class Gone extends Error {
  override readonly name = 'Gone';
}

/** Refuses by what the headers say, before a byte of the body is read. */
export function checkLength(incoming: IncomingMessage, reader: BodyReader<unknown>, request: Request): void {
  const declared = incoming.headers['content-length'];
  if (declared === undefined) throw fail('MissingContentLengthHeader');
  if (Number(declared) > reader.bytesMax) throw reader.tooLarge(request);
}

/** The parser holds the sender to its Content-Length, so `checkLength` has bounded what comes. */
export async function readBody(incoming: IncomingMessage): Promise<Buffer> {
  if (incoming.destroyed) throw new Gone('the connection broke before the body was read');
  // A small body has come with its headers.
  if (incoming.complete) return (incoming.read() as Buffer | null) ?? Buffer.alloc(0);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    incoming.on('error', () => reject(new Gone('the connection broke while the body was read')));
  });
}

/** Whether so much of the body is still to come that the connection should not be used again. */
export function isBurdened(incoming: IncomingMessage): boolean {
  if (incoming.complete || incoming.readableEnded) return false;
  const declared = incoming.headers['content-length'];
  return declared === undefined
    ? incoming.headers['transfer-encoding'] !== undefined
    : Number(declared) > DROP_BYTES_MAX;
}

/**
 * Ends a connection whose sender is still busy with its body. Closing at once would reset it, and the answer, though sent,
 * would be lost; so the rest is read and dropped for a moment.
 */
export function linger(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const end = () => {
    clearTimeout(timer);
    outgoing.end();
  };
  const timer = setTimeout(end, LINGER_MILLISECONDS);
  incoming.once('end', end);
  incoming.once('close', end);
  incoming.resume();
}
