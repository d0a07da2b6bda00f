/** Requests of a history on the wire, and their answers. */
import type { connect } from '../support/signed-client.mjs';
import type { Answer, Request } from './history.ts';
import { isInPlaceRequest } from './in-place-model.ts';
import { answerOf, changing, creating, inPlaceContent } from './in-place-requests.ts';
import { LEASE_SECONDS } from './model.ts';

export const CONTAINER = 'histories';

type Connection = ReturnType<typeof connect>;
export type Sent = Parameters<Connection['send']>;
export type Received = Awaited<ReturnType<Connection['send']>>;

/** The answer, or why there is none. */
export type Outcome = { readonly answer: Answer } | { readonly unknown: string } | 'never sent';

export interface Wire {
  readonly connection: Connection;
  readonly origin: string;
  /** After these milliseconds the client hangs up. */
  readonly patience: number;
  /** How many bytes the content has on the wire. */
  lengthOf(content: string): number;
}

export async function perform(blob: string, request: Request, wire: Wire): Promise<Outcome> {
  if (request.kind === 'advance') return advance(wire, LEASE_SECONDS + 1);
  return attempt(wire, sendingOf(blob, request, wire), (answer) => outcomeOf(request, answer, wire));
}

/** @param read parses the response into an answer */
export async function attempt<T>(
  { connection, patience }: Pick<Wire, 'connection' | 'patience'>,
  [method, target, options]: Sent,
  read: (answer: Received) => T,
): Promise<T | { readonly unknown: string } | 'never sent'> {
  try {
    const answer = await connection.send(method, target, {
      ...options,
      onRequest(outgoing) {
        const timer = setTimeout(() => outgoing.destroy(new Error('impatient')), patience);
        outgoing.once('close', () => clearTimeout(timer));
        outgoing.end(options?.body);
      },
    });
    return read(answer);
  } catch (error) {
    return lost(error);
  }
}

function lost(error: unknown): { readonly unknown: string } | 'never sent' {
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED' && syscall === 'connect') return 'never sent';
  return { unknown: typeof code === 'string' ? code : message };
}

export function bodyOf(content: string, length: number): Buffer {
  return Buffer.alloc(Math.max(length, content.length + 1), `${content}\n`);
}

function sendingOf(blob: string, request: Exclude<Request, { kind: 'advance' }>, { lengthOf }: Wire): Sent {
  const target = `/${CONTAINER}/${blob}`;
  const { kind } = request;
  const named = 'ifMatch' in request && request.ifMatch ? { 'if-match': request.ifMatch } : {};
  const held = 'leaseId' in request && request.leaseId ? { 'x-ms-lease-id': request.leaseId } : {};
  if (isInPlaceRequest(request)) return changing(target, request);
  switch (kind) {
    case 'put': {
      const absent = request.ifNoneMatch ? { 'if-none-match': '*' } : {};
      if (request.type) return creating(target, request.type, request.content, { ...named, ...held, ...absent });
      const headers = { 'x-ms-blob-type': 'BlockBlob', ...named, ...held, ...absent };
      return ['PUT', target, { headers, body: bodyOf(request.content, lengthOf(request.content)) }];
    }
    case 'get':
      return ['GET', `${target}${ofSnapshot(request.snapshot)}`, { headers: held }];
    case 'delete': {
      const also = request.snapshots ? { 'x-ms-delete-snapshots': request.snapshots } : {};
      return ['DELETE', target, { headers: { ...named, ...held, ...also } }];
    }
    case 'delete snapshot':
      return ['DELETE', `${target}${ofSnapshot(request.snapshot)}`];
    case 'snapshot':
    case 'undelete':
      return ['PUT', `${target}?comp=${kind}`, { headers: { ...named, ...held } }];
    default: {
      const ofAction: Record<string, string> = {
        ...(kind === 'acquire'
          ? { 'x-ms-lease-duration': String(request.seconds), 'x-ms-proposed-lease-id': request.leaseId }
          : held),
        ...(kind === 'change' ? { 'x-ms-proposed-lease-id': request.newId } : {}),
        ...(kind === 'break' ? { 'x-ms-lease-break-period': '0' } : {}),
      };
      return ['PUT', `${target}?comp=lease`, { headers: { 'x-ms-lease-action': kind, ...ofAction } }];
    }
  }
}

function ofSnapshot(id: string | undefined): string {
  return id === undefined ? '' : `?snapshot=${encodeURIComponent(id)}`;
}

const ANSWERS_NOTHING: ReadonlySet<Request['kind']> = new Set(['delete', 'delete snapshot', 'undelete']);

export function outcomeOf(request: Request, received: Received, wire: Wire): Outcome {
  const { status, code, headers, body } = received;
  // Also of a 503 it is not taken for granted that nothing happened.
  if (status >= 500) return { unknown: `${status} ${code ?? ''}` };
  if (status >= 400) return { answer: { refused: code ?? String(status) } };
  const { etag } = headers;
  if (request.kind === 'snapshot') return { answer: { etag, snapshot: String(headers['x-ms-snapshot']) } };
  if (ANSWERS_NOTHING.has(request.kind)) return { answer: {} };
  if (isInPlaceRequest(request)) return { answer: { etag, ...answerOf(request, received) } };
  if (request.kind !== 'get') return { answer: { etag } };
  // A snapshot has none.
  const lease = headers['x-ms-lease-state']?.toString();
  return { answer: { content: inPlaceContent(received) ?? contentOf(body, wire), etag, lease } };
}

/** An incomplete body is no content that was written. */
function contentOf(body: Buffer, { lengthOf }: Wire): string {
  const content = body.subarray(0, body.indexOf('\n')).toString();
  return body.equals(bodyOf(content, lengthOf(content))) ? content : `torn ${content} (${body.length} bytes)`;
}

/** Moves the time of the store. */
export async function advance({ origin, patience }: Pick<Wire, 'origin' | 'patience'>, seconds: number) {
  const url = `${origin}/_holdfast/clock/advance?seconds=${seconds}`;
  try {
    const { status } = await fetch(url, { method: 'POST', signal: AbortSignal.timeout(patience) });
    return status === 204 ? { answer: {} } : { unknown: `${status} advance` };
  } catch (error) {
    return lost(error);
  }
}
