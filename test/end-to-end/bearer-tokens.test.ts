/** Bearer tokens with --oauth basic, and the challenge that tells clients to bring one. */
import { request as httpsRequest } from 'node:https';
import { TableServiceClient } from '@azure/data-tables';
import { BlobServiceClient } from '@azure/storage-blob';
import { ShareServiceClient } from '@azure/storage-file-share';
import { QueueServiceClient } from '@azure/storage-queue';
import { describe, expect, it } from 'vitest';
import type { ServiceName } from '../../src/services/common/names.ts';
import { account, expectRefusal, serverFor } from '../support/test-server.ts';

const running = serverFor('memory', { https: 'auto', oauth: 'basic' });
const TENANT = '72f988bf-86f1-41af-91ab-2d7cd011db47';
const SERVICES = ['blob', 'queue', 'table', 'file'] as const;

const challengeFor = (tenant: string) =>
  `Bearer authorization_uri=https://login.microsoftonline.com/${tenant}/oauth2/authorize resource_id=https://storage.azure.com`;

function tokenWith(claims: object): string {
  const seconds = Math.floor(Date.now() / 1_000);
  const good = { iss: `https://sts.windows.net/${TENANT}/`, aud: 'https://storage.azure.com' };
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const all = { ...good, nbf: seconds - 60, exp: seconds + 600, ...claims };
  return `${part({ alg: 'none', typ: 'JWT' })}.${part(all)}.nothing`;
}

const urlOf = (service: ServiceName) => running.server[`${service}Url`];
/** Needed by the File service only. */
const INTENT = { 'x-ms-file-request-intent': 'backup' };
const LISTS = { blob: '/?comp=list', queue: '/?comp=list', table: '/Tables', file: '/?comp=list' };

/** List Containers, List Queues, Query Tables or List Shares. */
function list(service: ServiceName, authorization?: string, more: Record<string, string> = INTENT) {
  const headers = { 'x-ms-version': '2025-07-05', ...(authorization && { Authorization: authorization }), ...more };
  return new Promise<{ status: number; code: unknown; challenge: string | undefined }>((resolve, reject) => {
    const options = { headers, ca: running.server.authority!.certificate, agent: false };
    httpsRequest(new URL(`${urlOf(service)}${LISTS[service]}`), options, (answer) => {
      const { 'x-ms-error-code': code, 'www-authenticate': challenge } = answer.headers;
      resolve({ status: answer.resume().statusCode!, code, challenge });
    })
      .on('error', reject)
      .end();
  });
}

describe.each(SERVICES)('A bearer token for the %s service', (service) => {
  it('gives access to the account, by its claims only', async () => {
    expect((await list(service, `Bearer ${tokenWith({})}`)).status).toBe(200);
    expect((await list(service, `bearer ${tokenWith({})}`)).status).toBe(200);
  });

  it.each(SERVICES)('is for its own service, if its audience is the %s address of the account', async (named) => {
    const token = tokenWith({ aud: `https://${account}.${named}.core.windows.net` });
    expect((await list(service, `Bearer ${token}`)).status).toBe(named === service ? 200 : 401);
  });

  it.each([
    ['is expired', { exp: 1 }, TENANT],
    ['is not valid yet', { nbf: 9_999_999_999 }, TENANT],
    ['is for something else', { aud: 'https://graph.microsoft.com' }, TENANT],
    ['is from elsewhere', { iss: `https://example.com/${TENANT}/` }, 'common'],
    ['names no tenant that there can be', { iss: 'https://sts.windows.net/a b/', aud: '' }, 'common'],
  ])('is refused with a challenge if it %s', async (_, wrong, tenant) => {
    expect(await list(service, `Bearer ${tokenWith(wrong)}`)).toEqual({
      status: 401,
      code: 'InvalidAuthenticationInfo',
      challenge: challengeFor(tenant),
    });
  });

  it('is refused with a challenge if it cannot be read', async () => {
    const refused = { status: 401, code: 'InvalidAuthenticationInfo', challenge: challengeFor('common') };
    expect(await list(service, 'Bearer abc')).toEqual(refused);
  });

  it('is asked for, where nothing is shown', async () => {
    const asked = { status: 401, code: 'NoAuthenticationInformation', challenge: challengeFor('common') };
    expect(await list(service)).toEqual(asked);
  });
});

describe('A bearer token without the intent of a backup', () => {
  it('opens no files', async () => {
    const refusal = async (headers: Record<string, string>) => list('file', `Bearer ${tokenWith({})}`, headers);
    expect(await refusal({})).toMatchObject({ status: 400, code: 'MissingRequiredHeader' });
    const other = { 'x-ms-file-request-intent': 'fun' };
    expect(await refusal(other)).toMatchObject({ status: 400, code: 'InvalidHeaderValue' });
  });
});

describe("Microsoft's clients", () => {
  /** The credential, and the tenants for which it was asked for a token. */
  function credentialWith(claims: object) {
    const tenants: (string | undefined)[] = [];
    const getToken = async (_: unknown, options?: { tenantId?: string }) => {
      tenants.push(options?.tenantId);
      return { token: tokenWith(claims), expiresOnTimestamp: Date.now() + 600_000 };
    };
    return { tenants, credential: { getToken } };
  }
  const options = () => ({
    tlsOptions: { ca: running.server.authority!.certificate },
    retryOptions: { maxTries: 1, maxRetries: 0 },
  });

  it.each([
    ['blob', (credential) => new BlobServiceClient(urlOf('blob'), credential, options()).listContainers().next()],
    ['queue', (credential) => new QueueServiceClient(urlOf('queue'), credential, options()).listQueues().next()],
    ['table', (credential) => new TableServiceClient(urlOf('table'), credential, options()).listTables().next()],
    [
      'file',
      (credential) => {
        const own = { ...options(), fileRequestIntent: 'backup' } as const;
        return new ShareServiceClient(urlOf('file'), credential, own).listShares().next();
      },
    ],
  ] satisfies [ServiceName, (credential: ReturnType<typeof credentialWith>['credential']) => Promise<unknown>][])(
    'for %s bring tokens, and understand why one is refused',
    async (_, callWith) => {
      await callWith(credentialWith({}).credential);
      const { credential, tenants } = credentialWith({ aud: 'https://graph.microsoft.com' });
      await expectRefusal(callWith(credential), 401, 'InvalidAuthenticationInfo');
      // Asked once more, for the tenant of the challenge.
      expect(tenants.slice(0, 2)).toEqual([undefined, TENANT]);
    },
  );
});

describe('A bearer token in x-ms-copy-source-authorization', () => {
  /** A request with a token of its own. */
  function put(path: string, headers: Record<string, string>, body = '') {
    const own = {
      'x-ms-version': '2025-07-05',
      Authorization: `Bearer ${tokenWith({})}`,
      'Content-Length': body.length,
    };
    return new Promise<{ status: number; code: unknown }>((resolve, reject) => {
      const options = { method: 'PUT', headers: { ...own, ...headers }, ca: running.server.authority!.certificate };
      httpsRequest(new URL(`${urlOf('blob')}${path}`), { ...options, agent: false }, (answer) => {
        resolve({ status: answer.resume().statusCode!, code: answer.headers['x-ms-error-code'] });
      })
        .on('error', reject)
        .end(body);
    });
  }

  it('authorizes the read of the source, which that of the request does not', async () => {
    await put('/copies?restype=container', {});
    await put('/copies/from', { 'x-ms-blob-type': 'BlockBlob' }, 'x');
    const source = { 'x-ms-copy-source': `${urlOf('blob')}/copies/from` };
    const authorization = (claims: object) => ({ 'x-ms-copy-source-authorization': `Bearer ${tokenWith(claims)}` });
    for (const [query, kind, status] of [
      ['?comp=block&blockid=AAAA', {}, 201],
      ['', { 'x-ms-blob-type': 'BlockBlob' }, 201],
      ['', { 'x-ms-requires-sync': 'true' }, 202],
    ] as const) {
      const copy = (headers: object) => put(`/copies/to${query}`, { ...source, ...kind, ...headers });
      const refused = { status: 401, code: 'CannotVerifyCopySource' };
      expect(await copy({})).toEqual(refused);
      expect(await copy(authorization({ aud: 'https://elsewhere.example' }))).toEqual(refused);
      expect(await copy(authorization({}))).toEqual({ status, code: undefined });
    }
  });
});
