/** The operations on entities. Those that change one can also be parts of a transaction. */
import type { Storage } from '../../services/storage.ts';
import type { Change, Changed } from '../../services/table/changes.ts';
import { deleteEntity, getEntity, insertEntity, updateEntity } from '../../services/table/entities.ts';
import { etagOf } from '../../services/table/entity-rows.ts';
import { queryEntities } from '../../services/table/queries.ts';
import { type Input, type Operation, operationOn, type Permission, type Readers, type Route } from '../operation.ts';
import { pathPart } from '../params.ts';
import type { Reply } from '../reply.ts';
import { entityKeys } from './address.ts';
import { encodeToken } from './continuation.ts';
import { readEntity } from './entity-json.ts';
import { entitiesText } from './entity-text.ts';
import {
  answer,
  filter,
  fromEntity,
  ifMatch,
  jsonBody,
  mayInsert,
  noEtag,
  ofElement,
  ofSet,
  preference,
  top,
} from './params.ts';
import { emptyReply, entityReply, insertedReply, jsonReply } from './replies.ts';

const operation = operationOn<Storage>();
const table = pathPart(0);
const entity = jsonBody(readEntity);

/** `changeOf`: what the row does, for a transaction to do it; its output is then handed to the row's reply. */
export interface ChangeOperation {
  readonly row: Operation<Storage>;
  changeOf(input: unknown): Change;
}

interface ChangeRow<Row extends Readers> {
  readonly name: string;
  readonly route: Route;
  readonly when?: Readonly<Record<string, true>>;
  readonly permission: Permission;
  readonly test: string;
  readonly input: Row;
  readonly change: (input: Input<Row>) => Change;
  readonly reply: (changed: Changed, input: Input<Row>) => Reply;
}

function changing<Row extends Readers & { table: typeof table }>(row: ChangeRow<Row>): ChangeOperation {
  const { change, reply, ...rest } = row;
  return {
    changeOf: (input) => change(input as Input<Row>),
    row: operation({
      ...rest,
      run: async (storage, input): Promise<Output<Row>> => {
        const { table: name } = input as { table: string };
        return { input, changed: await changeAlone(storage, name, change(input)) };
      },
      reply: ({ changed, input }: Output<Row>) => reply(changed, input),
    }),
  };
}

interface Output<Row extends Readers> {
  readonly input: Input<Row>;
  readonly changed: Changed;
}

async function changeAlone(storage: Storage, name: string, change: Change): Promise<Changed> {
  const { kind } = change;
  if (kind === 'insert') return { kind, entity: await insertEntity(storage, { table: name, ...change }) };
  if (kind === 'update') return { kind, ...(await updateEntity(storage, { table: name, ...change })) };
  await deleteEntity(storage, { table: name, ...change });
  return { kind };
}

const ENTITY = '/{table}({keys})';
const update = { table, keys: entityKeys, ofElement, ifMatch, entity };

/** Without If-Match they also make what is not there. */
const UPDATES = [
  { route: `PUT ${ENTITY}`, merge: false, names: ['Update Entity', 'Insert Or Replace Entity'] },
  { route: `PATCH|MERGE ${ENTITY}`, merge: true, names: ['Merge Entity', 'Insert Or Merge Entity'] },
] as const;

export const changeOperations: readonly ChangeOperation[] = [
  changing({
    name: 'Insert Entity',
    route: 'POST /{table}',
    permission: 'add',
    test: 'test/end-to-end/table-entities.test.ts',
    input: { table, ofElement, noEtag, preference, answer, entity },
    change: (input) => ({ kind: 'insert', entity: input.entity }),
    reply: (changed, input) => insertedReply((changed as Inserted).entity, input.answer, input.preference),
  }),
  ...UPDATES.flatMap(({ route, merge, names: [name, upsert] }) =>
    [
      { name, when: { 'If-Match': true }, permission: 'update', input: update } as const,
      { name: upsert, permission: { all: ['add', 'update'] }, input: { ...update, mayInsert } } as const,
    ].map((kind) =>
      changing({
        ...kind,
        route,
        test: 'test/end-to-end/table-entities.test.ts',
        change: (input) => ({ kind: 'update', ...input.keys, merge, ifMatch: input.ifMatch, entity: input.entity }),
        reply: (changed) => emptyReply({ ETag: etagOf(changed as Updated) }),
      }),
    ),
  ),
  changing({
    name: 'Delete Entity',
    route: `DELETE ${ENTITY}`,
    permission: 'delete',
    test: 'test/end-to-end/table-entities.test.ts',
    input: { table, keys: entityKeys, ofElement, ifMatch },
    change: (input) => ({ kind: 'delete', ...input.keys, ifMatch: input.ifMatch }),
    reply: () => emptyReply(),
  }),
];

type Inserted = Changed & { kind: 'insert' };
type Updated = Changed & { kind: 'update' };

export const queryOperations: readonly Operation<Storage>[] = [
  operation({
    name: 'Query Entities',
    route: 'GET /{table}',
    permission: 'read',
    test: 'test/end-to-end/table-queries.test.ts',
    input: { table, ofSet, filter, top, from: fromEntity, answer },
    run: async (storage, input) => ({ ...(await queryEntities(storage, input)), answer: input.answer }),
    reply: ({ entities, next, answer }) =>
      jsonReply(200, entitiesText(entities, answer), answer, {
        'x-ms-continuation-NextPartitionKey': next && encodeToken(next.partitionKey),
        'x-ms-continuation-NextRowKey': next && encodeToken(next.rowKey),
      }),
  }),
  operation({
    name: 'Get Entity',
    route: `GET ${ENTITY}`,
    permission: 'read',
    test: 'test/end-to-end/table-entities.test.ts',
    input: { table, keys: entityKeys, ofElement, answer },
    run: async (storage, input) => ({
      entity: await getEntity(storage, { table: input.table, ...input.keys }),
      answer: input.answer,
    }),
    reply: ({ entity, answer }) => entityReply(entity, answer),
  }),
];
