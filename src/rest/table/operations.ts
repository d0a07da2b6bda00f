/** The Table service on the wire: one row per operation, in the order of Microsoft's REST reference. */
import type { Storage } from '../../services/common/storage.ts';
import { queryTables } from '../../services/table/queries.ts';
import { createTable, deleteTable, getTable, getTableAcl, setTableAcl } from '../../services/table/tables.ts';
import { type Operation, operationOn } from '../operation.ts';
import { pathPart, xmlBody } from '../params.ts';
import { xmlReply } from '../reply.ts';
import { serviceOperations } from '../service-operations.ts';
import { parsePolicies, policiesXml } from '../xml/access-policies.ts';
import { batchOperation } from './batch/batch.ts';
import { encodeToken } from './continuation.ts';
import { changeOperations, queryOperations } from './entity-operations.ts';
import { readTableName } from './json/read-entity.ts';
import { formatTable, formatTables } from './json/write-entity.ts';
import {
  answer,
  checkElementOptions,
  checkSetOptions,
  filter,
  jsonBody,
  preference,
  rejectEtagHeaders,
  tableAddress,
  tableContinuation,
  top,
} from './params.ts';
import { createdReply, emptyReply, jsonReply } from './replies.ts';

const operation = operationOn<Storage>();
const table = pathPart(0);

const SHAPES = ['/', '/$batch', '/Tables', '/Tables({table})', '/{table}', '/{table}({keys})'] as const;

export const tableOperations: readonly Operation<Storage>[] = [
  ...serviceOperations('table', SHAPES),
  operation({
    name: 'Query Tables',
    route: 'GET /Tables',
    permission: 'list',
    test: 'test/end-to-end/table-tables.test.ts',
    input: { checkSetOptions, filter, top, from: tableContinuation, answer },
    run: async (storage, input) => ({ ...(await queryTables(storage, input)), answer: input.answer }),
    reply: ({ tables, next, answer }) =>
      jsonReply(200, formatTables(tables, answer), answer, {
        'x-ms-continuation-NextTableName': next && encodeToken(next),
      }),
  }),
  operation({
    name: 'Query Tables',
    route: 'GET /Tables({table})',
    permission: 'list',
    test: 'test/end-to-end/table-tables.test.ts',
    input: { table, checkElementOptions, answer },
    run: async (storage, input) => ({ ...(await getTable(storage, input)), answer: input.answer }),
    reply: ({ table, answer }) => jsonReply(200, formatTable(table, answer), answer),
  }),
  operation({
    name: 'Create Table',
    route: 'POST /Tables',
    permission: ['create', 'write'],
    test: 'test/end-to-end/table-tables.test.ts',
    input: { checkElementOptions, rejectEtagHeaders, preference, answer, table: jsonBody(readTableName) },
    run: async (storage, input) => ({ ...input, ...(await createTable(storage, input)) }),
    reply: ({ table, answer, preference }) =>
      createdReply({ address: tableAddress(table), text: () => formatTable(table, answer) }, answer, preference),
  }),
  operation({
    name: 'Delete Table',
    route: 'DELETE /Tables({table})',
    permission: 'delete',
    test: 'test/end-to-end/table-tables.test.ts',
    input: { table, checkElementOptions, rejectEtagHeaders },
    run: deleteTable,
    reply: () => emptyReply(),
  }),
  operation({
    name: 'Get Table ACL',
    route: 'GET|HEAD /{table}',
    query: { comp: 'acl' },
    permission: 'owner',
    test: 'test/end-to-end/table-acl.test.ts',
    input: { table },
    run: getTableAcl,
    reply: (policies) => xmlReply(200, policiesXml(policies)),
  }),
  operation({
    name: 'Set Table ACL',
    route: 'PUT /{table}',
    query: { comp: 'acl' },
    permission: 'owner',
    test: 'test/end-to-end/table-acl.test.ts',
    input: { table, document: xmlBody('SignedIdentifiers') },
    run: (storage, input) =>
      setTableAcl(storage, { table: input.table, policies: parsePolicies(input.document, 'table') }),
    reply: () => ({ status: 204 }),
  }),
  ...queryOperations,
  ...changeOperations.map(({ row }) => row),
  batchOperation,
];
