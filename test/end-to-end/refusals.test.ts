/** Settings and headers that this server does not implement are refused: none is accepted and ignored. */
import { beforeEach, describe, expect, it } from 'vitest';
import { blobOperations } from '../../src/rest/blob/operations.ts';
import type { Operation } from '../../src/rest/operation.ts';
import { serviceSas } from '../support/raw-signing.mjs';
import { type Answer, expectError, serverFor } from '../support/test-server.ts';

const running = serverFor('memory');
const CONTAINER = '/kept';
const BLOB = '/kept/blob';
const LOG = '/kept/log';
const DISK = '/kept/disk';
const FIRST_PAGE = { 'x-ms-range': 'bytes=0-511' };
let diskSnapshot: string;

type Row = Pick<Operation<never>, 'name' | 'shape' | 'query' | 'when'>;
type Headers = Readonly<Record<string, string>>;

/** What a row's request needs besides the parameters that route it. */
interface Completion {
  readonly path?: string;
  readonly query?: Headers;
  readonly headers?: Headers;
  readonly body?: string;
}
const lease = { headers: { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': '-1' } };
const completions: Readonly<Record<string, () => Completion>> = {
  'Create Container': () => ({ path: '/made' }),
  'Lease Container': () => lease,
  'Lease Blob': () => lease,
  'Copy Blob': () => ({ headers: { 'x-ms-copy-source': `${running.server.blobUrl}${BLOB}` } }),
  'Incremental Copy Blob': () => ({
    path: '/kept/new',
    headers: { 'x-ms-copy-source': `${signedSource(DISK)['x-ms-copy-source']}&snapshot=${diskSnapshot}` },
  }),
  'Copy Blob From URL': () => ({ headers: signedSource() }),
  'Put Blob From URL': () => ({ headers: signedSource() }),
  'Put Block From URL': () => ({ query: { blockid: 'AAAA' }, headers: signedSource() }),
  'Set Blob Tier': () => ({ headers: { 'x-ms-access-tier': 'Cool' } }),
  'Put Block': () => ({ query: { blockid: 'AAAA' }, body: 'x' }),
  'Put Block List': () => ({ body: '<BlockList />' }),
  'Set Blob Tags': () => ({ body: '<Tags><TagSet /></Tags>' }),
  'Put Blob (append blob)': () => ({ path: '/kept/new' }),
  'Append Block': () => ({ path: LOG, body: 'x' }),
  'Append Block From URL': () => ({ path: LOG, headers: signedSource() }),
  'Append Blob Seal': () => ({ path: LOG }),
  'Put Blob (page blob)': () => ({ path: '/kept/new', headers: { 'x-ms-blob-content-length': '512' } }),
  'Put Page': () => ({ path: DISK, headers: FIRST_PAGE, body: 'x'.repeat(512) }),
  'Put Page From URL': () => ({
    path: DISK,
    headers: { ...FIRST_PAGE, 'x-ms-source-range': 'bytes=0-511', ...signedSource(DISK) },
  }),
  'Clear Page': () => ({ path: DISK, headers: FIRST_PAGE }),
  'Get Page Ranges': () => ({ path: DISK }),
};

/** The operations from a URL need a credential of the source. */
function signedSource(path = BLOB): Headers {
  const signature = serviceSas(path, { sv: '2022-11-02', sr: 'b', sp: 'r', se: '2099-01-01T00:00:00Z' }).join('&');
  return { 'x-ms-copy-source': `${running.server.blobUrl}${path}?${signature}` };
}

beforeEach(begin);

async function begin(): Promise<void> {
  await running.server.reset();
  const made = await running.request('PUT', `${CONTAINER}?restype=container`, { headers: { 'x-ms-meta-kept': 'yes' } });
  const headers = { 'x-ms-blob-type': 'BlockBlob', 'x-ms-meta-kept': 'yes' };
  const put = await running.request('PUT', BLOB, { headers, body: 'kept' });
  const log = await running.request('PUT', LOG, { headers: { 'x-ms-blob-type': 'AppendBlob' } });
  const pages = { 'x-ms-blob-type': 'PageBlob', 'x-ms-blob-content-length': '512' };
  const disk = await running.request('PUT', DISK, { headers: pages });
  const snapshot = await running.request('PUT', `${DISK}?comp=snapshot`);
  expect([made, put, log, disk, snapshot].map(({ status }) => status)).toEqual([201, 201, 201, 201, 201]);
  diskSnapshot = String(snapshot.headers['x-ms-snapshot']);
}

const paths: Readonly<Record<string, string>> = { '/': '/', '/{container}': CONTAINER, '/{container}/{blob}': BLOB };

function send(method: string, row: Row, extra: { headers?: Headers; query?: Headers } = {}): Promise<Answer> {
  const { path: special, query: needed, headers, body } = completions[row.name]?.() ?? {};
  const path = special ?? paths[row.shape]!;
  const query = new URLSearchParams({ ...texts(row.query), ...needed, ...extra.query }).toString();
  return running.request(method, query ? `${path}?${query}` : path, {
    headers: { ...texts(row.when), ...headers, ...extra.headers },
    ...(body === undefined ? {} : { body }),
  });
}

/** Any text will do where a row asks only that something be there. */
function texts(tests: Row['query'] = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(tests).map(([name, value]) => [name, value === true ? 'some' : value]));
}

/** All that a request could have changed. */
async function picture(): Promise<unknown> {
  const requests = [
    '/?comp=list&include=metadata',
    '/?comp=properties&restype=service',
    `${CONTAINER}?restype=container`,
    `${CONTAINER}?restype=container&comp=acl`,
    `${CONTAINER}?restype=container&comp=list&include=metadata,copy,tags,uncommittedblobs`,
    `${BLOB}?comp=blocklist&blocklisttype=all`,
    BLOB,
  ];
  const seen: unknown[] = [];
  for (const path of requests) {
    const { status, headers, text } = await running.request('GET', path);
    expect(status).toBe(200);
    const { date, 'x-ms-request-id': id, ...lasting } = headers;
    seen.push({ path, lasting, text });
  }
  return seen;
}

async function expectRefused(ask: () => Promise<Answer>, status: number, code: string, ...words: string[]) {
  const before = await picture();
  const answer = await ask();
  expect([answer.status, answer.headers['x-ms-error-code']]).toEqual([status, code]);
  for (const word of words) expect(answer.text || answer.reason).toContain(word);
  expect(await picture()).toEqual(before);
}

const cells = blobOperations.flatMap((row) =>
  [...row.unsupported, ...row.unsupportedUnlessLenient].flatMap((refused) =>
    row.methods.map((method) => ({ row, method, refused })),
  ),
);

describe('A header or parameter of a feature that is missing', () => {
  it('is all that is wrong with the requests below', async () => {
    const rows = new Set(cells.map(({ row }) => row));
    for (const row of rows) {
      // It would take the blob away; a test of its own shows that it does.
      if (row.name === 'Delete Blob') continue;
      for (const method of row.methods) {
        await begin();
        const { status, text } = await send(method, row);
        expect(status, `${method} ${row.name}: ${text}`).toBeLessThan(300);
      }
    }
  });

  for (const { row, method, refused } of cells) {
    it(`is refused: ${refused} in ${row.name} (${method})`, async () => {
      const name = refused.replace('?', '');
      const extra = refused.startsWith('?') ? { query: { [name]: 'some' } } : { headers: { [name]: 'some' } };
      await expectRefused(() => send(method, row, extra), 501, 'NotImplemented', name);
    });
  }
});

it('x-ms-encryption-algorithm without a key is accepted', async () => {
  const headers = { 'x-ms-blob-type': 'BlockBlob', 'x-ms-encryption-algorithm': 'AES256' };
  expect((await running.request('PUT', BLOB, { headers, body: 'plain' })).status).toBe(201);
});

describe('An operation that is missing', () => {
  const missing = blobOperations.filter((row) => !row.isImplemented);

  for (const row of missing) {
    for (const method of row.methods) {
      it(`is refused: ${row.name} (${method} ${row.shape})`, () =>
        expectRefused(() => send(method, row), 501, 'NotImplemented', row.name));
    }
  }
});

describe('Public access', () => {
  const rows = blobOperations.filter(({ name }) => name === 'Create Container' || name === 'Set Container ACL');

  for (const row of rows) {
    it(`is refused where it is no kind of access: ${row.name}`, () => {
      const headers = { 'x-ms-blob-public-access': 'everything' };
      return expectRefused(() => send('PUT', row, { headers }), 400, 'InvalidHeaderValue');
    });
  }

  it('is checked for both operations that accept it', () => expect(rows).toHaveLength(2));
});

describe('Delete Blob', () => {
  const row = blobOperations.find(({ name }) => name === 'Delete Blob')!;

  it('refuses to delete what no policy keeps for good, and keeps the blob', () =>
    expectRefused(() => running.request('DELETE', `${BLOB}?deletetype=permanent`), 409, 'BlobOperationNotSupported'));

  it('deletes when it is asked for nothing that is missing', async () => {
    expect((await send('DELETE', row)).status).toBe(202);
    expect((await running.request('HEAD', BLOB)).status).toBe(404);
  });
});

describe('Set Blob Service Properties', () => {
  const none = '<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>';
  const refused: [title: string, xml: string, word: string][] = [
    ['a static website', '<StaticWebsite><Enabled>true</Enabled></StaticWebsite>', 'StaticWebsite'],
  ];
  const version = '<DefaultServiceVersion>2019-12-12</DefaultServiceVersion>';
  const set = (xml: string) =>
    running.request('PUT', '/?restype=service&comp=properties', {
      body: `<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties>${xml}</StorageServiceProperties>`,
    });

  it.each(refused)('refuses %s, and stores nothing of the document', (_title, xml, word) =>
    expectRefused(() => set(version + xml), 501, 'NotImplemented', word),
  );

  it('accepts a document in which all of that is switched off', async () => {
    const off = [
      `<Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write>${none}</Logging>`,
      `<HourMetrics><Version>1.0</Version><Enabled>false</Enabled>${none}</HourMetrics>`,
      `<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>${none}</MinuteMetrics>`,
      '<Cors />',
      '<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>',
      '<StaticWebsite><Enabled>false</Enabled></StaticWebsite>',
    ];
    expect((await set(version + off.join(''))).status).toBe(202);
    expect((await running.request('GET', '/?restype=service&comp=properties')).text).toContain(version);
  });

  it('refuses an unknown setting', () =>
    expectRefused(() => set(`${version}<Teleport><Enabled>true</Enabled></Teleport>`), 400, 'InvalidXmlDocument'));
});

describe('A single-valued header', () => {
  const [early, late] = ['Mon, 16 Nov 2026 07:00:00 GMT', 'Tue, 17 Nov 2099 07:00:00 GMT'];
  const guid = '11111111-1111-1111-1111-111111111111';

  it.each<[string, string, Readonly<Record<string, string | readonly string[]>>]>([
    ['GET', 'If-Modified-Since', { 'If-Modified-Since': [early, late] }],
    ['GET', 'If-Unmodified-Since', { 'If-Unmodified-Since': [late, early] }],
    ['GET', 'x-ms-range', { 'x-ms-range': ['bytes=0-0', 'bytes=1-1'] }],
    ['GET', 'x-ms-lease-id', { 'x-ms-lease-id': [guid, guid] }],
    ['GET', 'x-ms-version', { 'x-ms-version': ['2025-07-05', '2019-02-02'] }],
    ['PUT', 'If-Modified-Since', { 'If-Modified-Since': [early, late] }],
    ['PUT', 'If-Unmodified-Since', { 'If-Unmodified-Since': [late, early] }],
    ['PUT', 'Content-Type', { 'Content-Type': ['a/b', 'c/d'] }],
    ['COPY', 'x-ms-source-if-modified-since', { 'x-ms-source-if-modified-since': [early, late] }],
    ['COPY', 'x-ms-source-if-unmodified-since', { 'x-ms-source-if-unmodified-since': [late, early] }],
  ])('is refused if it is sent twice: %s with two of %s', async (method, name, headers) => {
    const copy = { 'x-ms-copy-source': `${running.server.blobUrl}${BLOB}` };
    const own = method === 'PUT' ? { 'x-ms-blob-type': 'BlockBlob' } : method === 'COPY' ? copy : {};
    const before = await picture();
    const answer = await running.request(method === 'GET' ? 'GET' : 'PUT', BLOB, {
      headers: { ...own, ...headers },
      ...(method === 'PUT' && { body: 'other' }),
    });
    expectError(answer, 400, 'InvalidHeaderValue');
    expect(answer.text.toLowerCase()).toContain(`<headername>${name.toLowerCase()}</headername>`);
    expect(await picture()).toEqual(before);
  });
});
