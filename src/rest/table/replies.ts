/** Replies of the Table service, and content negotiation by Accept, $format and Prefer. */

import { memoize } from '../../base/memoize.ts';
import { entityEtag, type StoredEntity } from '../../services/table/entity-rows.ts';
import type { Reply } from '../reply.ts';
import { type AnswerFormat, formatEntity, type MetadataLevel } from './json/write-entity.ts';
import { entityAddress } from './params.ts';

interface HeaderValues {
  readonly type?: string;
  readonly preference?: Preference | undefined;
  readonly location?: string;
  readonly id?: string;
  readonly etag?: string | undefined;
}

/** One literal for all replies: to spread objects would cost more than the rest of a reply. */
function replyHeaders({ type, preference, location, id, etag }: HeaderValues): NonNullable<Reply['headers']> {
  return {
    'X-Content-Type-Options': COMMON_HEADERS['X-Content-Type-Options'],
    'Cache-Control': COMMON_HEADERS['Cache-Control'],
    'Content-Type': type,
    'Preference-Applied': preference,
    Location: location,
    DataServiceId: id,
    ETag: etag,
  };
}

export function jsonReply(
  status: number,
  body: NonNullable<Reply['body']>,
  { level }: Pick<AnswerFormat, 'level'>,
  headers?: Reply['headers'],
): Reply {
  const own = replyHeaders({ type: jsonType(level) });
  return { status, headers: headers ? { ...own, ...headers } : own, body };
}

export function emptyReply(etag?: string): Reply {
  return { status: 204, headers: replyHeaders({ etag }) };
}

interface CreatedResource {
  /** Relative to the endpoint. */
  readonly address: string;
  readonly etag?: string;
  readonly text: () => string | Buffer;
}

/** Has the created resource as its body, unless the caller prefers no content. */
export function createdReply(
  { address, etag, text }: CreatedResource,
  { level, endpoint }: Pick<AnswerFormat, 'level' | 'endpoint'>,
  preference: Preference | undefined,
): Reply {
  const location = `${endpoint}/${address}`;
  if (preference === 'return-no-content') {
    return { status: 204, headers: replyHeaders({ preference, location, id: location, etag }) };
  }
  return { status: 201, headers: replyHeaders({ type: jsonType(level), preference, location, etag }), body: text() };
}

export function entityReply(entity: StoredEntity, answer: AnswerFormat): Reply {
  const headers = replyHeaders({ type: jsonType(answer.level), etag: entityEtag(entity) });
  return { status: 200, headers, body: formatEntity(entity, answer) };
}

export function insertedReply(entity: StoredEntity, answer: AnswerFormat, preference: Preference | undefined): Reply {
  const address = entityAddress(answer.table, entity);
  return createdReply(
    { address, etag: entityEtag(entity), text: () => formatEntity(entity, answer) },
    answer,
    preference,
  );
}

/** On every answer of the Table service that is not XML. */
export const COMMON_HEADERS = { 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-cache' };

const LEVELS: readonly MetadataLevel[] = ['nometadata', 'minimalmetadata', 'fullmetadata'];
const DEFAULT_LEVEL: MetadataLevel = 'minimalmetadata';

/** JSON with a level of metadata, or a format that is not supported. */
export type NegotiatedFormat = { readonly level: MetadataLevel } | 'atom' | 'unknown';

export function jsonType(level: MetadataLevel): string {
  return `application/json;odata=${level};streaming=true;charset=utf-8`;
}

/** $format has precedence over Accept. Of the types in Accept the first supported one. */
export function negotiateFormat(accept: string | undefined, format: string | undefined): NegotiatedFormat {
  if (format) return format.toLowerCase() === 'json' ? { level: DEFAULT_LEVEL } : parseMediaType(format);
  return accept === undefined ? { level: DEFAULT_LEVEL } : negotiateAccept(accept);
}

const negotiateAccept = memoize((accept): NegotiatedFormat => {
  if (accept.trim() === '') return { level: DEFAULT_LEVEL };
  let unsupported: NegotiatedFormat = 'unknown';
  for (const type of accept.split(',')) {
    const wanted = parseMediaType(type);
    if (typeof wanted === 'object') return wanted;
    if (wanted === 'atom') unsupported = wanted;
  }
  return unsupported;
});

function parseMediaType(text: string): NegotiatedFormat {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  if (type === 'atom' || type === 'application/atom+xml' || type === 'application/xml' || type === 'text/xml') {
    return 'atom';
  }
  if (type !== 'application/json' && type !== 'application/*' && type !== '*/*') return 'unknown';
  const odata = parameters.find((parameter) => parameter.startsWith('odata='))?.slice('odata='.length);
  if (odata === undefined || type !== 'application/json') return { level: DEFAULT_LEVEL };
  const level = LEVELS.find((one) => one === odata);
  return level === undefined ? 'unknown' : { level };
}

export type Preference = 'return-content' | 'return-no-content';

/** Ignores other preferences, as RFC 7240 allows. */
export function parsePreference(prefer: string | string[] | undefined): Preference | undefined {
  if (prefer === undefined) return undefined;
  for (const part of String(prefer).split(',')) {
    const value = part.trim().toLowerCase();
    if (value === 'return-content' || value === 'return-no-content') return value;
  }
  return undefined;
}
