/** What the Table service answers with. */
import { etagOf, type StoredEntity } from '../../services/table/entity-rows.ts';
import type { Reply } from '../reply.ts';
import { type Answer, entityAddress, entityText } from './entity-text.ts';
import { COMMON_HEADERS, jsonType, type Preference } from './formats.ts';

export function jsonReply(
  status: number,
  body: string | Buffer,
  { level }: Pick<Answer, 'level'>,
  headers?: Reply['headers'],
): Reply {
  return { status, headers: { ...COMMON_HEADERS, 'Content-Type': jsonType(level), ...headers }, body };
}

export function emptyReply(headers?: Reply['headers']): Reply {
  return { status: 204, headers: { ...COMMON_HEADERS, ...headers } };
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
  answer: Pick<Answer, 'level' | 'endpoint'>,
  preference: Preference | undefined,
): Reply {
  const Location = `${answer.endpoint}/${address}`;
  const applied = preference && { 'Preference-Applied': preference };
  if (preference === 'return-no-content') {
    return emptyReply({ ...applied, Location, DataServiceId: Location, ETag: etag });
  }
  return jsonReply(201, text(), answer, { ...applied, Location, ETag: etag });
}

export function entityReply(entity: StoredEntity, answer: Answer): Reply {
  return jsonReply(200, entityText(entity, answer), answer, { ETag: etagOf(entity) });
}

export function insertedReply(entity: StoredEntity, answer: Answer, preference: Preference | undefined): Reply {
  const address = entityAddress(answer.table, entity);
  return madeReply({ address, etag: etagOf(entity), text: () => entityText(entity, answer) }, answer, preference);
}
