/** A server in memory whose time stands still unless a test moves it, and the resources that tests put into it. */
import { afterAll, beforeAll, expect, vi } from 'vitest';
import { type Id, type LeaseRequest, type Resource, type Step, titleOf } from '../truth-tables/lease-actions.ts';
import { type Answer, type Running, serverFor } from './test-server.ts';

export interface Said extends Answer {
  readonly code: string | undefined;
}

type Headers = Readonly<Record<string, string | undefined>>;

export interface StillServer {
  send(method: string, path: string, headers?: Headers, body?: string): Promise<Said>;
  wait(seconds: number): Promise<void>;
}

/** Each write has an instant of its own, so the server runs some ticks ahead of a clock that stands still. */
const OVERTAKES_SECONDS = 0.001;

/** Stops the time of this process, so that no second passes between two requests however slow the machine is. */
export function stillServer(): StillServer {
  beforeAll(() => {
    // In the middle of a second, as most writes happen.
    const now = Math.floor(Date.now() / 1000) * 1000 + 471;
    vi.useFakeTimers({ toFake: ['Date', 'hrtime'], now });
  });
  afterAll(() => {
    vi.useRealTimers();
  });
  return movingServer(serverFor('memory'));
}

/** Its time goes on: for tests that do not depend on a few seconds. */
export function movingServer(running: Running): StillServer {
  return {
    async send(method, path, headers = {}, body = '') {
      const answer = await running.request(method, path, { headers, body });
      return { ...answer, code: answer.headers['x-ms-error-code'] as string | undefined };
    },
    wait: (seconds) => running.server.clock.advance(seconds + OVERTAKES_SECONDS),
  };
}

export const leaseIds: Readonly<Record<Id, string>> = {
  A: 'aaaaaaaa-0000-4000-8000-00000000000a',
  B: 'bbbbbbbb-0000-4000-8000-00000000000b',
  C: 'cccccccc-0000-4000-8000-00000000000c',
};

/** A blob or a container; `path` is that of its URL. */
export interface Target {
  readonly resource: Resource;
  readonly path: string;
}

interface Call {
  readonly method: string;
  readonly query?: string;
  readonly headers?: Headers;
  readonly body?: string;
}

const acquire: Headers = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': '-1' };
const changes: Headers = { 'x-ms-meta-written': 'again' };

/** A blob of one page that anybody can read, for the operations From URL: any host that begins with the account is this server. */
const SOURCE = { container: '/public-source', blob: '/public-source/page' };
const fromUrl: Headers = { 'x-ms-copy-source': `http://devstoreaccount1.blob.example${SOURCE.blob}` };
const firstPage: Headers = { 'x-ms-range': 'bytes=0-511' };
const PAGE = 'x'.repeat(512);

/** The least that makes each operation succeed on a resource that is there. */
const calls: Readonly<Record<string, Call>> = {
  'Put Blob': { method: 'PUT', headers: { 'x-ms-blob-type': 'BlockBlob' }, body: 'written again' },
  'Get Blob': { method: 'GET' },
  'Get Blob Properties': { method: 'HEAD' },
  'Get Blob Metadata': { method: 'GET', query: 'comp=metadata' },
  'Set Blob Metadata': { method: 'PUT', query: 'comp=metadata', headers: changes },
  'Set Blob Properties': { method: 'PUT', query: 'comp=properties', headers: { 'x-ms-blob-content-type': 'text/css' } },
  'Delete Blob': { method: 'DELETE' },
  'Lease Blob': { method: 'PUT', query: 'comp=lease', headers: acquire },
  'Put Blob (append blob)': { method: 'PUT', headers: { 'x-ms-blob-type': 'AppendBlob' } },
  'Append Block': { method: 'PUT', query: 'comp=appendblock', body: PAGE },
  'Append Block From URL': { method: 'PUT', query: 'comp=appendblock', headers: fromUrl },
  'Append Blob Seal': { method: 'PUT', query: 'comp=seal' },
  'Put Blob (page blob)': {
    method: 'PUT',
    headers: { 'x-ms-blob-type': 'PageBlob', 'x-ms-blob-content-length': '1024' },
  },
  'Put Page': { method: 'PUT', query: 'comp=page', headers: { ...firstPage, 'x-ms-page-write': 'update' }, body: PAGE },
  'Clear Page': { method: 'PUT', query: 'comp=page', headers: { ...firstPage, 'x-ms-page-write': 'clear' } },
  'Put Page From URL': {
    method: 'PUT',
    query: 'comp=page',
    headers: { ...firstPage, ...fromUrl, 'x-ms-page-write': 'update', 'x-ms-source-range': 'bytes=0-511' },
  },
  'Get Page Ranges': { method: 'GET', query: 'comp=pagelist' },
  'Set Blob Properties (resize)': {
    method: 'PUT',
    query: 'comp=properties',
    headers: { 'x-ms-blob-content-length': '512' },
  },
  'Set Blob Properties (sequence number)': {
    method: 'PUT',
    query: 'comp=properties',
    headers: { 'x-ms-sequence-number-action': 'increment' },
  },
  'Get Container Properties': { method: 'GET', query: 'restype=container' },
  'Get Container Metadata': { method: 'GET', query: 'restype=container&comp=metadata' },
  'Set Container Metadata': { method: 'PUT', query: 'restype=container&comp=metadata', headers: changes },
  'Get Container ACL': { method: 'GET', query: 'restype=container&comp=acl' },
  'Set Container ACL': { method: 'PUT', query: 'restype=container&comp=acl' },
  'Delete Container': { method: 'DELETE', query: 'restype=container' },
  'Lease Container': { method: 'PUT', query: 'restype=container&comp=lease', headers: acquire },
};

export function call(server: StillServer, operation: string, { path }: Target, headers: Headers = {}): Promise<Said> {
  const found = calls[operation];
  if (!found) throw new Error(`no request is known for ${operation}`);
  const { method, query, body } = found;
  return server.send(method, query ? `${path}?${query}` : path, { ...found.headers, ...headers }, body);
}

/** Metadata and ETag of the resource, and its lease. */
export function look(server: StillServer, target: Target, headers: Headers = {}): Promise<Said> {
  return call(server, target.resource === 'blob' ? 'Get Blob Properties' : 'Get Container Properties', target, headers);
}

export async function createContainer(server: StillServer, path: string): Promise<Target> {
  const made = await server.send('PUT', `${path}?restype=container`);
  expect(made.status, made.text).toBe(201);
  return { resource: 'container', path };
}

/** The blob that the operations From URL read. */
export async function createSource(server: StillServer): Promise<void> {
  const made = await server.send('PUT', `${SOURCE.container}?restype=container`, { 'x-ms-blob-public-access': 'blob' });
  expect(made.status, made.text).toBe(201);
  await server.send('PUT', SOURCE.blob, { 'x-ms-blob-type': 'BlockBlob' }, PAGE);
}

/** @param type undefined: a block blob */
export async function createBlob(server: StillServer, path: string, type?: 'append' | 'page'): Promise<Target> {
  const target: Target = { resource: 'blob', path };
  const made = await call(server, type === undefined ? 'Put Blob' : `Put Blob (${type} blob)`, target);
  expect(made.status, made.text).toBe(201);
  return target;
}

export function sendLease(server: StillServer, target: Target, request: LeaseRequest): Promise<Said> {
  const named = (id: Id | undefined) => (id === undefined ? undefined : leaseIds[id]);
  return call(server, target.resource === 'blob' ? 'Lease Blob' : 'Lease Container', target, {
    'x-ms-lease-action': request.action,
    'x-ms-lease-id': 'id' in request ? named(request.id) : undefined,
    'x-ms-proposed-lease-id': 'proposedId' in request ? named(request.proposedId) : undefined,
    'x-ms-lease-duration': request.action === 'acquire' ? `${request.seconds}` : undefined,
    'x-ms-lease-break-period':
      request.action === 'break' && request.periodSeconds !== undefined ? `${request.periodSeconds}` : undefined,
  });
}

export async function takeStep(server: StillServer, target: Target, step: Step): Promise<void> {
  if (step.action === 'wait') return server.wait(step.seconds);
  if (step.action === 'read') {
    expect((await look(server, target)).status).toBe(200);
    return;
  }
  if (step.action === 'write') {
    const operation = target.resource === 'blob' ? 'Set Blob Metadata' : 'Set Container Metadata';
    const written = await call(server, operation, target, { 'x-ms-lease-id': step.id && leaseIds[step.id] });
    expect(written.status, written.text).toBe(200);
    return;
  }
  const answer = await sendLease(server, target, step);
  expect(answer.code, `${titleOf(step)}: ${answer.text}`).toBeUndefined();
}
