/** Requests of a browser for a web page to a server with the well-known key: writes without a preflight, and DNS rebinding. */
import { request as httpRequest } from 'node:http';
import { beforeAll, describe, expect, it } from 'vitest';
import { accountSas } from '../support/raw-signing.mjs';
import { account, expectError, type RawRequest, serverFor } from '../support/test-server.ts';

const SAS = accountSas({
  sv: '2022-11-02',
  ss: 'bqt',
  srt: 'sco',
  sp: 'rwdlacup',
  se: '2099-01-01T00:00:00Z',
}).join('&');
const PAGE = { Origin: 'https://evil.example', 'x-ms-version': undefined, 'x-ms-date': undefined };
const rule = {
  allowedOrigins: 'https://evil.example',
  allowedMethods: 'POST,GET',
  allowedHeaders: '*',
  exposedHeaders: '*',
  maxAgeInSeconds: 1,
};
const MESSAGE = '<QueueMessage><MessageText>bWluZQ==</MessageText></QueueMessage>';

describe('A web page', () => {
  const running = serverFor('memory');
  const queue = () => running.queues.getQueueClient('queue');
  const messages = async () => (await queue().peekMessages({ numberOfMessages: 32 })).peekedMessageItems.length;
  const put = (headers: RawRequest['headers'] = {}) =>
    running.request('POST', `/queue/messages?${SAS}`, {
      of: 'queue',
      unsigned: true,
      body: MESSAGE,
      headers: { 'Content-Type': 'text/plain;charset=UTF-8', ...PAGE, ...headers },
    });

  beforeAll(async () => {
    await running.queues.createQueue('queue');
    await running.tables.createTable('table');
  });

  it('puts no message without a preflight, unless a rule allows its origin', async () => {
    expectError(await put(), 403, 'AuthorizationFailure');
    expectError(await put({ 'Content-Type': undefined }), 403, 'AuthorizationFailure');
    expectError(await put({ Origin: 'null' }), 403, 'AuthorizationFailure');
    expectError(await put({ Origin: undefined, 'Sec-Fetch-Site': 'cross-site' }), 403, 'AuthorizationFailure');
    expect(await messages()).toBe(0);
    await running.queues.setProperties({ cors: [rule] });
    expect((await put()).status).toBe(201);
    expectError(await put({ Origin: 'https://other.example' }), 403, 'AuthorizationFailure');
    await running.queues.setProperties({ cors: [] });
    expectError(await put(), 403, 'AuthorizationFailure');
    expect(await messages()).toBe(1);
  });

  it('dequeues no message for an image or a link', async () => {
    const take = (site: string) =>
      running.request('GET', `/queue/messages?visibilitytimeout=1&${SAS}`, {
        of: 'queue',
        unsigned: true,
        headers: { ...PAGE, Origin: undefined, 'Sec-Fetch-Site': site, 'Sec-Fetch-Mode': 'no-cors' },
      });
    await queue().sendMessage('mine');
    for (const site of ['cross-site', 'same-site']) expectError(await take(site), 403, 'AuthorizationFailure');
    expect((await take('none')).text).toContain('<DequeueCount>1<');
  });

  it('adds no table and no entity', async () => {
    const post = (path: string, body: object) =>
      running.request('POST', `${path}?${SAS}`, {
        of: 'table',
        unsigned: true,
        body: JSON.stringify(body),
        headers: { 'Content-Type': 'text/plain', ...PAGE },
      });
    const [table, entity] = [{ TableName: 'pages' }, { PartitionKey: 'p', RowKey: 'r' }];
    expect((await post('/Tables', table)).status).toBe(403);
    expect((await post('/table', entity)).status).toBe(403);
    await expect(running.table('table').getEntity('p', 'r')).rejects.toMatchObject({ statusCode: 404 });
  });

  it('reads as Azure lets it: the browser keeps the answer from it', async () => {
    const list = await running.request('GET', `/?comp=list&${SAS}`, { unsigned: true, headers: PAGE });
    expect(list.status).toBe(200);
    expect(list.headers['access-control-allow-origin']).toBeUndefined();
  });

  it('writes as before where a preflight came first, and so does every other program', async () => {
    expect((await put({ 'x-ms-version': '2025-07-05' })).status).toBe(201);
    expect((await put({ 'Content-Type': 'application/xml' })).status).toBe(201);
    expect((await put({ Origin: undefined })).status).toBe(201);
    const { host } = new URL(running.server.queueUrl);
    expect((await put({ Origin: `http://${host}` })).status).toBe(201);
    const url = `${running.server.queueUrl}/queue/messages?${SAS}`;
    expect((await fetch(url, { method: 'POST', body: MESSAGE })).status).toBe(201);
  });
});

describe('A web page that asks by a name', () => {
  const running = serverFor('memory', { allowedHosts: ['Storage.example'] });
  const path = `/${account}`;

  // biome-ignore format: a table
  it.each([
    ['localhost', 200], ['azurite', 200], ['127.0.0.1', 200], ['[::1]', 200], ['storage.example', 200],
    [`${account}.blob.localhost`, 200], [`${account}.blob.core.windows.net`, 200],
    ['evil.example', 403], ['below.storage.example', 403], [`${account}.evil.example`, 403],
  ])('of %s, which leads here, gets %i', async (name, status) => {
    const { port } = new URL(running.server.blobUrl);
    const host = `${name}:${port}`;
    const base = name.startsWith(account) ? '' : path;
    const ask = (headers: Record<string, string>) =>
      fetchAs(host, `${base}/?comp=list&${SAS}`, { Origin: `http://${host}`, ...headers });
    expect(await ask({})).toBe(status);
    expect(await ask({ 'x-ms-version': '2025-07-05' })).toBe(status);
    const own = { 'Sec-Fetch-Site': 'same-origin' };
    expect(await fetchAs(host, `${base}/?comp=list&${SAS}`, own)).toBe(status);
    // Another program may call the server whatever it likes.
    expect(await fetchAs(host, `${base}/?comp=list&${SAS}`, {})).toBe(200);
  });

  function fetchAs(host: string, target: string, headers: Record<string, string>): Promise<number> {
    const { port } = new URL(running.server.blobUrl);
    return new Promise((resolve, reject) => {
      httpRequest({ host: '127.0.0.1', port, path: target, headers: { Host: host, ...headers } }, (answer) =>
        resolve(answer.resume().statusCode!),
      )
        .on('error', reject)
        .end();
    });
  }
});

describe('The endpoints of the server itself', () => {
  const running = serverFor('memory');
  const reset = (headers: Record<string, string>) =>
    running.request('POST', '/_holdfast/reset', { unsigned: true, headers, body: '' });

  it('answer to no page of another site', async () => {
    for (const site of ['cross-site', 'same-site']) {
      expectError(await reset({ 'Sec-Fetch-Site': site }), 403, 'AuthorizationFailure');
      const accounts = await running.request('GET', '/_holdfast/accounts', {
        unsigned: true,
        headers: { 'Sec-Fetch-Site': site },
      });
      expectError(accounts, 403, 'AuthorizationFailure');
    }
    expectError(await reset({ Origin: 'https://evil.example' }), 403, 'AuthorizationFailure');
    for (const site of ['none', 'same-origin']) expect((await reset({ 'Sec-Fetch-Site': site })).status).toBe(204);
    expect((await reset({})).status).toBe(204);
  });

  it('tell everyone that the server is there', async () => {
    const headers = { 'Sec-Fetch-Site': 'cross-site' };
    expect((await running.request('GET', '/health/live', { unsigned: true, headers })).status).toBe(200);
  });
});

describe('The root of a service', () => {
  const running = serverFor('memory');
  const HTML = 'text/html,application/xhtml+xml,*/*;q=0.8';

  it.each(['blobUrl', 'queueUrl', 'tableUrl'] as const)('is a page for a browser: %s', async (name) => {
    const { origin } = new URL(running.server[name]);
    const page = await fetch(origin, { headers: { Accept: HTML } });
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await page.text()).toContain(running.server.blobUrl);
  });

  it('is an address without an account for every other client, and so is any other path', async () => {
    const { origin } = new URL(running.server.blobUrl);
    const other = await fetch(origin, { headers: { Accept: 'application/xml' } });
    expect(other.status).toBe(400);
    for (const path of ['/?comp=list', '/nobody', '//'])
      expect((await fetch(`${origin}${path}`, { headers: { Accept: HTML } })).status).not.toBe(200);
    expect((await fetch(running.server.blobUrl, { headers: { Accept: HTML } })).headers.get('content-type')).toContain(
      'xml',
    );
  });
});
