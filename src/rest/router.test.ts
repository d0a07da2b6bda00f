import { describe, expect, it } from 'vitest';
import { StorageError } from '../services/common/errors.ts';
import { notImplementedOperation, type Operation, operationOn, type Route } from './operation.ts';
import { pathPart } from './params.ts';
import { compileRouter, type RouteInput } from './router.ts';

const operation = operationOn<object>();

function row(name: string, route: Route, query = {}, when = {}): Operation<object> {
  return operation({
    name,
    route,
    query,
    when,
    permission: 'read',
    test: 'none',
    input: { container: pathPart(0) },
    run: async (_storage, input) => input.container,
    reply: (container) => ({ status: 200, body: container }),
  });
}

const router = compileRouter([
  row('List Containers', 'GET /', { comp: 'list' }),
  row('Create Container', 'PUT /{container}', { restype: 'container' }),
  row('Get Container Properties', 'GET|HEAD /{container}', { restype: 'container' }),
  row('List Blobs', 'GET /{container}', { restype: 'container', comp: 'list' }),
  row('Get Blob', 'GET /{container}/{blob}'),
  row('Put Blob', 'PUT /{container}/{blob}', {}, { 'x-ms-blob-type': 'BlockBlob' }),
  row('Put Blob From URL', 'PUT /{container}/{blob}', {}, { 'x-ms-blob-type': 'BlockBlob', 'x-ms-copy-source': true }),
  row('Copy Blob', 'PUT /{container}/{blob}', {}, { 'x-ms-copy-source': true }),
  row('Acquire Lease', 'PUT /{container}/{blob}', { comp: 'lease' }, { 'x-ms-lease-action': 'acquire' }),
  row('Break Lease', 'PUT /{container}/{blob}', { comp: 'lease' }, { 'x-ms-lease-action': 'break' }),
  row('Get Page Ranges', 'GET /{container}/{blob}', { comp: 'pagelist' }),
  row('Get Page Ranges Diff', 'GET /{container}/{blob}', { comp: 'pagelist', prevsnapshot: true }),
  notImplementedOperation('Set Blob Tier', 'PUT /{container}/{blob}', { comp: 'tier' }),
]);

const SHAPES = ['/', '/{container}', '/{container}/{blob}'] as const;

function request(
  method: string,
  depth: 0 | 1 | 2,
  query: Record<string, string> = {},
  headers: Record<string, string> = {},
): RouteInput {
  return { method, shape: SHAPES[depth], query, headers };
}

function refusal(of: RouteInput): StorageError {
  try {
    router.match(of);
  } catch (error) {
    if (error instanceof StorageError) return error;
    throw error;
  }
  throw new Error('it was matched');
}

describe('the router', () => {
  it('distinguishes operations by method, path, comp and restype', () => {
    expect(router.match(request('GET', 0, { comp: 'list' })).name).toBe('List Containers');
    expect(router.match(request('GET', 1, { restype: 'container' })).name).toBe('Get Container Properties');
    expect(router.match(request('HEAD', 1, { restype: 'container' })).name).toBe('Get Container Properties');
    expect(router.match(request('GET', 1, { restype: 'container', comp: 'list' })).name).toBe('List Blobs');
    expect(router.match(request('GET', 2, { timeout: '30' })).name).toBe('Get Blob');
    expect(router.match(request('PUT', 2, { comp: 'tier' })).isImplemented).toBe(false);
  });

  it('matches the row with the most criteria', () => {
    const both = { 'x-ms-blob-type': 'BlockBlob', 'x-ms-copy-source': 'http://a/b' };
    expect(router.match(request('PUT', 2, {}, both)).name).toBe('Put Blob From URL');
    expect(router.match(request('PUT', 2, {}, { 'x-ms-copy-source': 'http://a/b' })).name).toBe('Copy Blob');
    expect(router.match(request('PUT', 2, {}, { 'x-ms-blob-type': 'BlockBlob' })).name).toBe('Put Blob');
    expect(router.match(request('GET', 2, { comp: 'pagelist', prevsnapshot: 'x' })).name).toBe('Get Page Ranges Diff');
    expect(router.match(request('GET', 2, { comp: 'pagelist' })).name).toBe('Get Page Ranges');
  });

  it('compares values without regard to case', () => {
    expect(router.match(request('PUT', 2, { comp: 'Lease' }, { 'x-ms-lease-action': 'Acquire' })).name).toBe(
      'Acquire Lease',
    );
  });

  it('never lets an unknown comp fall through to the plain row', () => {
    expect(refusal(request('GET', 2, { comp: 'bogus' }))).toMatchObject({
      status: 400,
      code: 'InvalidQueryParameterValue',
      details: { QueryParameterName: 'comp', QueryParameterValue: 'bogus' },
    });
    expect(refusal(request('GET', 2, { restype: 'bogus' })).details).toMatchObject({ QueryParameterName: 'restype' });
  });

  it('refuses a method that the resource does not have', () => {
    expect(refusal(request('DELETE', 0, { comp: 'list' }))).toMatchObject({ status: 405, code: 'UnsupportedHttpVerb' });
    expect(refusal(request('POST', 2))).toMatchObject({ status: 405, code: 'UnsupportedHttpVerb' });
    expect(refusal(request('BREW', 2))).toMatchObject({ status: 405, code: 'UnsupportedHttpVerb' });
  });

  it('names the header that is missing or has an unknown value', () => {
    expect(refusal(request('PUT', 2, { comp: 'lease' }))).toMatchObject({
      code: 'MissingRequiredHeader',
      details: { HeaderName: 'x-ms-lease-action' },
    });
    expect(refusal(request('PUT', 2, { comp: 'lease' }, { 'x-ms-lease-action': 'steal' }))).toMatchObject({
      code: 'InvalidHeaderValue',
      details: { HeaderName: 'x-ms-lease-action', HeaderValue: 'steal' },
    });
    expect(refusal(request('PUT', 2))).toMatchObject({
      code: 'MissingRequiredHeader',
      details: { HeaderName: 'x-ms-blob-type' },
    });
  });

  it('asks for the restype of a container', () => {
    expect(refusal(request('PUT', 1)).details).toEqual({ QueryParameterName: 'restype' });
  });
});

describe('ambiguous rows', () => {
  const plain = row('One', 'GET /{container}/{blob}', {}, { 'x-ms-a': 'x' });

  it('are refused at start-up', () => {
    expect(() => compileRouter([plain, row('Two', 'GET|HEAD /{container}/{blob}', {}, { 'x-ms-a': 'X' })])).toThrow(
      /One and Two/,
    );
    expect(() => compileRouter([plain, row('Two', 'GET /{container}/{blob}', {}, { 'x-ms-b': true })])).toThrow(
      /One and Two/,
    );
  });

  it('do not exist where another method, path, value or a third row distinguishes them', () => {
    compileRouter([plain, row('Two', 'PUT /{container}/{blob}', {}, { 'x-ms-a': 'x' })]);
    compileRouter([plain, row('Two', 'GET /{container}', {}, { 'x-ms-a': 'x' })]);
    compileRouter([plain, row('Two', 'GET /{container}/{blob}', {}, { 'x-ms-a': 'y' })]);
    const two = row('Two', 'GET /{container}/{blob}', {}, { 'x-ms-b': true });
    compileRouter([plain, two, row('Both', 'GET /{container}/{blob}', {}, { 'x-ms-a': 'x', 'x-ms-b': true })]);
  });
});
