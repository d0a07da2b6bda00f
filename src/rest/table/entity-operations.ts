/** The operations on entities. Those that change one can also be parts of a transaction. */
import type { Storage } from '../../services/common/storage.ts';
import type { BatchChange } from '../../services/table/batches.ts';
import type { ChangeResult } from '../../services/table/changes.ts';
import { changeEntity, getEntity } from '../../services/table/entities.ts';
import { entityEtag } from '../../services/table/entity-rows.ts';
import { queryEntities } from '../../services/table/queries.ts';
import { type Input, type Operation, operationOn, type Permission, type Readers, type Route } from '../operation.ts';
import { pathPart } from '../params.ts';
import type { Reply } from '../reply.ts';
import { PAGE_BYTES } from '../reply-size.ts';
import { entityKeys } from './address.ts';
import { encodeToken } from './continuation.ts';
import { EntityPage } from './json/entity-page.ts';
import { readEntity } from './json/read-entity.ts';
import {
  answer,
  checkElementOptions,
  checkSetOptions,
  entityContinuation,
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

/** `changeOf`: what the row does, for a transaction to do it; its output is then handed to the row's reply. */
export interface ChangeOperation {
  readonly row: Operation<Storage>;
  toChange(input: unknown): BatchChange;
}

interface ChangeDefinition<Row extends Readers> {
  readonly name: string;
  readonly route: Route;
  readonly when?: Readonly<Record<string, true>>;
  readonly permission: Permission;
  readonly test: string;
  readonly input: Row;
  readonly change: (input: Input<Row>) => BatchChange;
  readonly reply: (changed: ChangeResult, input: Input<Row>) => Reply;
}

function changeOperation<Row extends Readers & { table: typeof table }>(row: ChangeDefinition<Row>): ChangeOperation {
  const { change, reply, ...rest } = row;
  return {
    toChange: (input) => change(input as Input<Row>),
    row: operation({
      ...rest,
      run: async (storage, input): Promise<ChangeOutput<Row>> => {
        const { table: name } = input as { table: string };
        return { input, changed: await changeEntity(storage, name, change(input)) };
      },
      reply: ({ changed, input }: ChangeOutput<Row>) => reply(changed, input),
    }),
  };
}

interface ChangeOutput<Row extends Readers> {
  readonly input: Input<Row>;
  readonly changed: ChangeResult;
}

const ENTITY = '/{table}({keys})';
const update = { table, keys: entityKeys, ofElement: checkElementOptions, ifMatch, entity };

/** Without If-Match they also make what is not there. */
const UPDATES = [
  { route: `PUT ${ENTITY}`, merge: false, names: ['Update Entity', 'Insert Or Replace Entity'] },
  { route: `PATCH|MERGE ${ENTITY}`, merge: true, names: ['Merge Entity', 'Insert Or Merge Entity'] },
] as const;

export const changeOperations: readonly ChangeOperation[] = [
  changeOperation({
    name: 'Insert Entity',
    route: 'POST /{table}',
    permission: 'add',
    test: 'test/end-to-end/table-entities.test.ts',
    input: { table, checkElementOptions, rejectEtagHeaders, preference, answer, entity },
    change: (input) => ({ kind: 'insert', table: input.table, entity: input.entity }),
    reply: (changed, input) => insertedReply((changed as Inserted).entity, input.answer, input.preference),
  }),
  ...UPDATES.flatMap(({ route, merge, names: [name, upsert] }) =>
    [
      { name, when: { 'If-Match': true }, permission: 'update', input: update } as const,
      {
        name: upsert,
        permission: { all: ['add', 'update'] },
        input: { ...update, mayInsert: requireUpsertVersion },
      } as const,
    ].map((kind) =>
      changeOperation({
        ...kind,
        route,
        test: 'test/end-to-end/table-entities.test.ts',
        change: ({ table: name, keys: { partitionKey, rowKey }, ifMatch: match, entity: sent }) => ({
          kind: 'update',
          table: name,
          partitionKey,
          rowKey,
          merge,
          ifMatch: match,
          entity: sent,
        }),
        reply: (changed) => emptyReply(entityEtag(changed as Updated)),
      }),
    ),
  ),
  changeOperation({
    name: 'Delete Entity',
    route: `DELETE ${ENTITY}`,
    permission: 'delete',
    test: 'test/end-to-end/table-entities.test.ts',
    input: { table, keys: entityKeys, checkElementOptions, ifMatch },
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
    test: 'test/end-to-end/table-entities.test.ts',
    input: { table, keys: entityKeys, checkElementOptions, answer },
    run: async (storage, { table: name, keys: { partitionKey, rowKey }, answer: format }) => ({
      entity: await getEntity(storage, { table: name, partitionKey, rowKey }),
      answer: format,
    }),
    reply: ({ entity, answer }) => entityReply(entity, answer),
  }),
];
