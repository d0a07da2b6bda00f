/** Requests that could be authorized as one thing and executed as another, because they say something twice or in two ways. */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { tableSasToken } from '../../src/rest/auth/sas-signature.ts';
import type { ServiceName } from '../../src/services/common/names.ts';
import { accountSas } from '../support/raw-signing.mjs';
import { account, accountKey, expectError, type RawRequest, serverFor } from '../support/test-server.ts';

const running = serverFor('memory');
const EXPIRY = '2099-01-01T00:00:00Z';
const VERSION = '2022-11-02';
const sasWith = (fields: Record<string, string> = {}): string[] =>
  accountSas({ sv: VERSION, ss: 'bqtf', srt: 'sco', sp: 'rwdlacup', se: EXPIRY, ...fields });

beforeAll(async () => {
  const container = running.service.getContainerClient('container');
  await container.create();
  await container.getBlockBlobClient('blob').upload('content', 7);
  await running.queues.createQueue('queue');
  await running.tables.createTable('table');
  await running.files.createShare('share');
});

beforeEach(async () => {
  await running.table('table').upsertEntity({ partitionKey: 'p', rowKey: 'r' });
});

const READS: Readonly<Record<ServiceName, string>> = {
  blob: '/container/blob',
  queue: '/queue/messages?peekonly=true',
  table: "/table(PartitionKey='p',RowKey='r')",
  file: '/share?restype=share',
};

/** A read that the query authorizes. */
function read(of: ServiceName, parts: readonly string[]) {
  const path = READS[of];
  const target = `${path}${path.includes('?') ? '&' : '?'}${parts.join('&')}`;
  return running.request('GET', target, { of, unsigned: true });
}

describe.each(['blob', 'queue', 'table', 'file'] as const)('A shared access signature of the %s service', (of) => {
  it('is accepted if each parameter occurs once', async () => {
    expect((await read(of, sasWith({ spr: 'https,http', sip: '127.0.0.1', st: '2020-01-01' }))).status).toBe(200);
  });

  // biome-ignore format: a list
  it.each([
    'sv', 'ss', 'srt', 'sr', 'sp', 'st', 'se', 'sip', 'spr', 'si', 'ses', 'sig', 'sdd', 'rscc', 'rscd', 'rsce', 'rscl', 'rsct',
    'tn', 'spk', 'srk', 'epk', 'erk', 'skoid', 'sktid', 'skt', 'ske', 'sks', 'skv', 'saoid', 'suoid', 'scid',
  ])('is refused where it says %s twice', async (name) => {
    const good = sasWith({ spr: 'https,http', sip: '127.0.0.1', st: '2020-01-01' });
    const [own = `${name}=`] = good.filter((part) => part.startsWith(`${name}=`));
    const rest = good.filter((part) => part !== own);
    const upper = `${name.toUpperCase()}${own.slice(name.length)}`;
    const encoded = `%${name.charCodeAt(0).toString(16)}${own.slice(1)}`;
    for (const twice of [[own, own], [own, upper], [encoded, own], [own, name], [`${name}=other`, own]]) {
      const answer = await read(of, [...twice, ...rest]);
      expect([twice, answer.status]).toEqual([twice, 403]);
      expect(answer.headers['x-ms-error-code'] ?? answer.text).toContain('AuthenticationFailed');
    }
  });
});

describe('The source of a copy', () => {
  it('is refused if a field of its signature occurs twice', async () => {
    const copyFrom = (parts: readonly string[]) => {
      const url = `${running.server.blobUrl}/container/blob?${parts.join('&')}`;
      return running.request('PUT', '/container/copy', { headers: { 'x-ms-copy-source': url } });
    };
    expect((await copyFrom(sasWith())).status).toBe(202);
    expect((await copyFrom([...sasWith(), 'sp=r'])).status).toBe(403);
  });
});

describe('A request with a repeated parameter or header', () => {
  it.each([
    ['comp', 'blob', '/container?restype=container&comp=list&comp=acl'],
    ['comp', 'queue', '/queue?comp=metadata&Comp=acl'],
    ['comp', 'table', '/table?comp=acl&%63omp=acl'],
    ['restype', 'blob', '/container?restype=container&restype=account'],
    ['restype', 'queue', '/?restype=service&comp=properties&restype=service'],
    ['blocklisttype', 'blob', '/container/blob?comp=blocklist&blocklisttype=committed&blocklisttype=all'],
    ['peekonly', 'queue', '/queue/messages?peekonly=true&peekonly=false'],
    ['snapshot', 'blob', '/container/blob?snapshot=a&snapshot=b'],
    ['versionid', 'blob', '/container/blob?versionid=a&versionid=b'],
  ] as const)('by %s, is refused by the %s service: %s', async (_, of, path) => {
    const answer = await running.request('GET', path, { of });
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('InvalidQueryParameterValue')]);
  });

  it('by any other parameter, gets what it said first', async () => {
    const answer = await running.request('GET', '/container?restype=container&comp=list&prefix=blob&prefix=x');
    expect(answer.text).toContain('<Name>blob</Name>');
  });

  const twice = (name: string, ...values: string[]): RawRequest['headers'] => ({ [name]: values });
  const LEASE = '/container/blob?comp=lease';
  // biome-ignore format: a table
  it.each<[method: string, path: string, headers: RawRequest['headers'], code: string]>([
    ['PUT', '/container/new', twice('x-ms-blob-type', 'BlockBlob', 'PageBlob'), 'InvalidHeaderValue'],
    ['PUT', '/container/new', twice('x-ms-blob-type', 'BlockBlob', 'BlockBlob'), 'InvalidHeaderValue'],
    ['GET', '/container/blob', twice('x-ms-version', '2025-07-05', '2009-09-19'), 'InvalidHeaderValue'],
    ['PUT', LEASE, { ...twice('x-ms-lease-action', 'break', 'acquire'), 'x-ms-lease-duration': '15' }, 'InvalidHeaderValue'],
    ['PUT', LEASE, { 'x-ms-lease-action': 'acquire', ...twice('x-ms-lease-duration', '15', '-1') }, 'InvalidHeaderValue'],
    ['GET', '/container/blob', twice('x-ms-lease-id', 'a', 'b'), 'InvalidHeaderValue'],
    ['DELETE', '/container/blob', twice('x-ms-delete-snapshots', 'include', 'only'), 'InvalidHeaderValue'],
    ['PUT', '/container?restype=container&comp=acl', twice('x-ms-blob-public-access', 'blob', 'container'), 'InvalidHeaderValue'],
  ])('%s %s by headers %j', async (method, path, headers, code) => {
    expectError(await running.request(method, path, { headers: { ...headers } }), 400, code);
  });
});

describe('X-HTTP-Method', () => {
  const entity = "/table(PartitionKey='p',RowKey='r')";
  const post = (letters: string, verbs: string | string[], body?: string) =>
    running.request('POST', `${entity}?${sasWith({ sp: letters }).join('&')}`, {
      of: 'table',
      unsigned: true,
      headers: {
        'X-HTTP-Method': verbs,
        'If-Match': '*',
        'Content-Type': 'application/json',
        'Content-Length': body?.length ?? 0,
      },
      ...(body !== undefined && { body }),
    });

  it('needs the permission of the verb that is executed', async () => {
    expect((await post('a', 'DELETE')).status).toBe(403);
    expect((await post('d', 'MERGE', '{}')).status).toBe(403);
    expect((await post('ra', ['GET', 'DELETE'])).status).toBe(400);
    expect(await running.table('table').getEntity('p', 'r')).toMatchObject({ rowKey: 'r' });
    expect((await post('d', 'DELETE')).status).toBe(204);
  });

  it('changes nothing of blobs and queues', async () => {
    const headers = { 'X-HTTP-Method': 'DELETE' };
    expect((await running.request('GET', '/container/blob', { headers })).status).toBe(200);
    const put = await running.request('POST', '/queue/messages', {
      of: 'queue',
      headers,
      body: '<QueueMessage><MessageText>bWluZQ==</MessageText></QueueMessage>',
    });
    expect(put.status).toBe(201);
  });
});

describe('A name', () => {
  const sas = (table: string) =>
    tableSasToken(account, { version: VERSION, permissions: 'r', expiry: EXPIRY, table }, accountKey);

  it('of a table is the same in any case, and no other', async () => {
    const get = (path: string, token: string) =>
      running.request('GET', `${path}?${token}`, { of: 'table', unsigned: true });
    expect((await get('/TABLE()', sas('table'))).status).toBe(200);
    expect((await get('/table()', sas('Table'))).status).toBe(200);
    expect((await get('/%54able()', sas('table'))).status).toBe(200);
    for (const path of ['/tables()', '/table%2F..%2Fother()', '/tab\u212Ae()']) {
      expect((await get(encodeURI(path).replaceAll('%252F', '%2F'), sas('table'))).status, path).toBeGreaterThanOrEqual(
        400,
      );
    }
  });

  it('with an encoded slash leads to no other container, queue or account', async () => {
    for (const of of ['blob', 'queue'] as const) {
      for (const path of [
        '/container%2Fblob',
        '/queue%2Fmessages',
        '%2Fcontainer/blob',
        '/container%2F..%2Fcontainer/blob',
      ]) {
        const answer = await running.request('GET', `${path}?${sasWith().join('&')}`, { of, unsigned: true });
        expect([of, path, answer.status >= 400], answer.text).toEqual([of, path, true]);
      }
    }
  });
});
