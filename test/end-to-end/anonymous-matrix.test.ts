/** Every cell of the table of anonymous access, tested over HTTP. */
import { beforeAll, describe, expect, it } from 'vitest';
import { parseQuery } from '../../src/rest/request.ts';
import { compileRouter } from '../../src/rest/router.ts';
import { serviceDefinitions } from '../../src/server/services.ts';
import { serverFor } from '../support/test-server.ts';
import { type AnonymousRow, anonymousRows } from '../truth-tables/anonymous.ts';

const running = serverFor('memory');
const LEVELS = ['none', 'blob', 'container'] as const;
type Level = (typeof LEVELS)[number];
/** A name that containers, queues, tables and shares can have. */
const nameAt = (level: Level) => `open${level}`;

beforeAll(async () => {
  const cors = [
    { allowedOrigins: '*', allowedMethods: 'GET', allowedHeaders: '', exposedHeaders: '', maxAgeInSeconds: 1 },
  ];
  await running.service.setProperties({ cors });
  await running.queues.setProperties({ cors });
  await running.tables.setProperties({ cors });
  await running.files.setProperties({ cors });
  for (const level of LEVELS) {
    const container = running.service.getContainerClient(nameAt(level));
    await container.create(level === 'none' ? {} : { access: level });
    const blob = container.getBlockBlobClient('dir/blob');
    await blob.upload('content', 7);
    await blob.stageBlock('YQ==', 'uncommitted', 11);
    await container.getPageBlobClient('dir/disk').create(512);
    await running.queues.createQueue(nameAt(level));
    await running.files.createShare(nameAt(level));
    await running.tables.createTable(nameAt(level));
    await running.table(nameAt(level)).createEntity({ partitionKey: 'p', rowKey: 'r' });
  }
});

/** The row of the server's table that the request is for. */
function operationOf({ service, request, headers }: AnonymousRow) {
  const [method = '', target = ''] = request.replaceAll('{container}', 'name').split(' ');
  const [path = '', query = ''] = target.split('?');
  const { table, parsePath } = serviceDefinitions[service].definition;
  const sent = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return compileRouter(table).match({ method, query: parseQuery(query), headers: sent, shape: parsePath(path).shape });
}

async function differenceAt(level: Level, row: AnonymousRow): Promise<string | undefined> {
  const { service, request, headers, open } = row;
  const [method = '', path = ''] = request.replaceAll('{container}', nameAt(level)).split(' ');
  const answer = await running.request(method, path, { unsigned: true, of: service, headers });
  const said = `${answer.status} ${answer.headers['x-ms-error-code'] ?? ''}`;
  const isOpen = open === 'always' || (open !== 'never' && LEVELS.indexOf(level) >= LEVELS.indexOf(open));
  // An operation that is not implemented refuses every caller.
  const meant =
    isOpen && operationOf(row).isImplemented ? answer.status === 200 : said === '401 NoAuthenticationInformation';
  return meant ? undefined : `${row.operation}, ${request}: ${said}`;
}

describe('A caller without any credential', () => {
  it('has a line in the table for every row of every operation table', () => {
    const found = new Set(anonymousRows.map(operationOf));
    for (const { table, service } of Object.values(serviceDefinitions).map(({ definition }) => definition)) {
      const forgotten = table.filter((row) => !found.has(row)).map(({ name, route }) => `${service} ${name} ${route}`);
      expect(forgotten).toEqual([]);
    }
    for (const row of anonymousRows) expect(operationOf(row).name, row.request).toBe(row.operation);
  });

  it.each(LEVELS)('has the permissions of the table at the access level: %s', async (level) => {
    const differences: string[] = [];
    for (const row of anonymousRows) {
      const difference = await differenceAt(level, row);
      if (difference !== undefined) differences.push(difference);
    }
    expect(differences).toEqual([]);
  });

  it('is refused for want of a credential before its headers, parameters and body are judged', async () => {
    const junk = { 'x-ms-range': 'junk', 'x-ms-lease-id': 'junk', 'x-ms-content-length': 'junk', 'If-Match': 'junk' };
    const parameters = 'timeout=junk&maxresults=junk&sharesnapshot=junk&marker=junk';
    const wrong: string[] = [];
    for (const { service, request, headers, open } of anonymousRows) {
      if (open === 'always') continue;
      const [method = '', path = ''] = request.replaceAll('{container}', nameAt('none')).split(' ');
      const answer = await running.request(method, `${path}${path.includes('?') ? '&' : '?'}${parameters}`, {
        ...{ unsigned: true, of: service, headers: { ...headers, ...junk } },
        ...(/^P/.test(method) && { body: '<junk' }),
      });
      if (answer.status !== 401) wrong.push(`${request}: ${answer.status} ${answer.headers['x-ms-error-code']}`);
    }
    expect(wrong).toEqual([]);
  });

  it('has changed nothing', async () => {
    for (const level of LEVELS) {
      const container = running.service.getContainerClient(nameAt(level));
      expect(await container.getBlobClient('dir/new').exists()).toBe(false);
      const lists = await container.getBlockBlobClient('dir/blob').getBlockList('all');
      expect(lists.uncommittedBlocks).toEqual([{ name: 'YQ==', size: 11 }]);
      const queue = await running.queues.getQueueClient(nameAt(level)).getProperties();
      expect(queue.approximateMessagesCount).toBe(0);
      const root = running.files.getShareClient(nameAt(level)).getDirectoryClient('');
      expect((await root.listFilesAndDirectories().next()).done).toBe(true);
      expect(await running.table(nameAt(level)).getEntity('p', 'r')).toMatchObject({ rowKey: 'r' });
    }
  });
});
