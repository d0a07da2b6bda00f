/** What the Table service answers with. */
import { etagOf, type StoredEntity } from '../../services/table/entity-rows.ts';
import type { Reply } from '../reply.ts';
import { COMMON_HEADERS, jsonType, type Preference } from './formats.ts';
import { type Answer, entityAddress, entityText } from './json/entity-text.ts';

interface Told {
  readonly type?: string;
  readonly preference?: Preference | undefined;
  readonly location?: string;
  readonly id?: string;
  readonly etag?: string | undefined;
}

/** One literal for all of them: to spread headers into new ones would cost more than all else about them. */
function headersOf({ type, preference, location, id, etag }: Told): NonNullable<Reply['headers']> {
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
  { level }: Pick<Answer, 'level'>,
  headers?: Reply['headers'],
): Reply {
  const own = headersOf({ type: jsonType(level) });
  return { status, headers: headers ? { ...own, ...headers } : own, body };
}

export function emptyReply(etag?: string): Reply {
  return { status: 204, headers: headersOf({ etag }) };
}

interface Made {
  /** Behind the endpoint. */
  readonly address: string;
  readonly etag?: string;
  readonly text: () => string | Buffer;
}

/** What was made is shown, unless the caller would rather not see it. */
export function madeReply(
  { address, etag, text }: Made,
  { level, endpoint }: Pick<Answer, 'level' | 'endpoint'>,
  preference: Preference | undefined,
): Reply {
  const location = `${endpoint}/${address}`;
  if (preference === 'return-no-content') {
    return { status: 204, headers: headersOf({ preference, location, id: location, etag }) };
  }
  return { status: 201, headers: headersOf({ type: jsonType(level), preference, location, etag }), body: text() };
}

export function entityReply(entity: StoredEntity, answer: Answer): Reply {
  const headers = headersOf({ type: jsonType(answer.level), etag: etagOf(entity) });
  return { status: 200, headers, body: entityText(entity, answer) };
}

export function insertedReply(entity: StoredEntity, answer: Answer, preference: Preference | undefined): Reply {
  const address = entityAddress(answer.table, entity);
  return madeReply({ address, etag: etagOf(entity), text: () => entityText(entity, answer) }, answer, preference);
}
