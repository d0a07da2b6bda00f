/** Replies of the Table service. */
import { entityEtag, type StoredEntity } from '../../services/table/entity-rows.ts';
import type { Reply } from '../reply.ts';
import { COMMON_HEADERS, jsonType, type Preference } from './content-negotiation.ts';
import { type AnswerFormat, entityAddress, formatEntity } from './json/write-entity.ts';

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
