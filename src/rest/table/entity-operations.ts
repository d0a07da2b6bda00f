/** The operations on entities. All of them can be parts of a batch. */
import type { Storage } from '../../services/common/storage.ts';
import { type Change, type ChangeResult, changeEntity, getEntity } from '../../services/table/entities.ts';
import { entityEtag, type SentEntity } from '../../services/table/entity-rows.ts';
import { queryEntities } from '../../services/table/queries.ts';
import {
  type ConditionHeader,
  type Input,
  type Operation,
  operationOn,
  type Permission,
  type Readers,
  type Route,
} from '../operation.ts';
import { pathPart } from '../params.ts';
import { PAGE_BYTES, type Reply } from '../reply.ts';
import { encodeToken } from './continuation.ts';
import { EntityPage } from './json/entity-page.ts';
import { readEntity } from './json/read-entity.ts';
import {
  answer,
  checkElementOptions,
  checkSetOptions,
  entityContinuation,
  entityKeys,
  filter,
  ifMatch,
  jsonBody,
  preference,
  rejectEtagHeaders,
  requireUpsertVersion,
  top,
} from './params.ts';
import { emptyReply, entityReply, insertedReply, jsonReply } from './replies.ts';

const operation = operationOn<Storage>();
const table = pathPart(0);
const entity = jsonBody(readEntity);

/** An operation that changes one entity. It can also be a part of a batch. */
export interface ChangeOperation {
  readonly row: Operation<Storage>;
  /** `head`: what `row.read` gave. Parts of a batch that differ only in their bodies share it, so it is never written to. */
  readChange(head: unknown, body: Buffer): Change | Promise<Change>;
  formatReply(result: ChangeResult, head: unknown): Reply;
}

interface ChangeDefinition<Head extends Readers> {
  readonly name: string;
  readonly route: Route;
  readonly when?: Readonly<Record<string, true>>;
  readonly permission: Permission;
  readonly conditions?: readonly ConditionHeader[];
  readonly returnsETag?: boolean;
  readonly head: Head;
  readonly hasBody: boolean;
  readonly change: (head: Input<Head>, entity: SentEntity) => Change;
  readonly reply: (result: ChangeResult, head: Input<Head>) => Reply;
}

const NO_ENTITY: SentEntity = { properties: [] };

function changeOperation<Head extends Readers & { table: typeof table }>(
  definition: ChangeDefinition<Head>,
): ChangeOperation {
  const { head, hasBody, change, reply, ...route } = definition;
  return {
    readChange(read, body) {
      const sent = hasBody ? readEntity(body) : NO_ENTITY;
      if (sent instanceof Promise) return sent.then((value) => change(read as Input<Head>, value));
      return change(read as Input<Head>, sent);
    },
    formatReply: (result, read) => reply(result, read as Input<Head>),
    row: operation({
      ...route,
      test: 'test/end-to-end/table-entities.test.ts',
      input: hasBody ? { ...head, entity } : head,
      run: async (storage, read) => {
        const input = read as Input<Head> & { readonly table: string; readonly entity?: SentEntity };
        return { input, result: await changeEntity(storage, input.table, change(input, input.entity ?? NO_ENTITY)) };
      },
      reply: ({ input, result }) => reply(result, input),
    }),
  };
}

const ENTITY = '/{table}({keys})';
const addressed = { table, keys: entityKeys, checkElementOptions, ifMatch };

const UPDATES = [
  { route: `PUT ${ENTITY}`, merge: false, names: ['Update Entity', 'Insert Or Replace Entity'] },
  { route: `PATCH|MERGE ${ENTITY}`, merge: true, names: ['Merge Entity', 'Insert Or Merge Entity'] },
] as const;

export const changeOperations: readonly ChangeOperation[] = [
  changeOperation({
    name: 'Insert Entity',
    route: 'POST /{table}',
    permission: 'add',
    returnsETag: true,
    head: { table, checkElementOptions, rejectEtagHeaders, preference, answer },
    hasBody: true,
    change: (head, sent) => ({ kind: 'insert', table: head.table, entity: sent }),
    reply: (result, head) => insertedReply((result as Inserted).entity, head.answer, head.preference),
  }),
  ...UPDATES.flatMap(({ route, merge, names: [name, upsert] }) =>
    [
      { name, when: { 'If-Match': true }, permission: 'update', conditions: ['If-Match'], head: addressed } as const,
      // Without If-Match the entity is inserted, if there is none.
      {
        name: upsert,
        permission: { all: ['add', 'update'] },
        head: { ...addressed, requireUpsertVersion },
      } as const,
    ].map((variant) =>
      changeOperation({
        ...variant,
        route,
        returnsETag: true,
        hasBody: true,
        change: ({ table: name, keys: { partitionKey, rowKey }, ifMatch: match }, sent) => ({
          kind: 'update',
          table: name,
          partitionKey,
          rowKey,
          merge,
          ifMatch: match,
          entity: sent,
        }),
        reply: (result) => emptyReply(entityEtag(result as Updated)),
      }),
    ),
  ),
  changeOperation({
    name: 'Delete Entity',
    route: `DELETE ${ENTITY}`,
    permission: 'delete',
    conditions: ['If-Match'],
    head: addressed,
    hasBody: false,
    change: ({ table: name, keys: { partitionKey, rowKey }, ifMatch: match }) => ({
      kind: 'delete',
      table: name,
      partitionKey,
      rowKey,
      ifMatch: match,
    }),
    reply: () => emptyReply(),
  }),
];

type Inserted = ChangeResult & { kind: 'insert' };
type Updated = ChangeResult & { kind: 'update' };

export const queryOperations: readonly Operation<Storage>[] = [
  operation({
    name: 'Query Entities',
    route: 'GET /{table}',
    permission: 'read',
    test: 'test/end-to-end/table-queries.test.ts',
    input: { table, checkSetOptions, filter, top, from: entityContinuation, answer },
    replyBytes: () => PAGE_BYTES,
    run: async (storage, input) => {
      const page = new EntityPage(input.answer);
      return { next: await queryEntities(storage, input, page), page, answer: input.answer };
    },
    reply: ({ page, next, answer }) =>
      jsonReply(200, page.end(), answer, {
        'x-ms-continuation-NextPartitionKey': next && encodeToken(next.partitionKey),
        'x-ms-continuation-NextRowKey': next && encodeToken(next.rowKey),
      }),
  }),
  operation({
    name: 'Get Entity',
    route: `GET ${ENTITY}`,
    permission: 'read',
    returnsETag: true,
    test: 'test/end-to-end/table-entities.test.ts',
    input: { table, keys: entityKeys, checkElementOptions, answer },
    run: async (storage, { table: name, keys: { partitionKey, rowKey }, answer: format }) => ({
      entity: await getEntity(storage, { table: name, partitionKey, rowKey }),
      answer: format,
    }),
    reply: ({ entity, answer }) => entityReply(entity, answer),
  }),
];
