import { describe, expect, it } from 'vitest';
import type { CorsRule } from '../rules/cors.ts';
import { StorageError } from '../services/common/errors.ts';
import { corsHeaders, preflight } from './cors.ts';
import type { Reply } from './reply.ts';

const exact: CorsRule = {
  allowedOrigins: ['http://one'],
  allowedMethods: ['GET', 'PUT'],
  allowedHeaders: ['x-ms-*'],
  exposedHeaders: ['ETag', 'x-ms-meta-*'],
  maxAgeSeconds: 60,
};
const open: CorsRule = { ...exact, allowedOrigins: ['*'], exposedHeaders: ['*'] };
const reply: Reply = { status: 200, headers: { ETag: '"1"', 'x-ms-meta-a': 'b', 'Cache-Control': undefined } };

const refusalOf = (headers: Record<string, string>, rules: readonly CorsRule[]): StorageError => {
  try {
    preflight({ method: 'OPTIONS', headers }, rules);
  } catch (error) {
    if (error instanceof StorageError) return error;
  }
  throw new Error('it was not refused');
};

describe('Preflight Blob Request', () => {
  const preflightHeaders = { origin: 'http://one', 'access-control-request-method': 'PUT' };

  it('repeats the requested origin, method and headers, with the maximal age', () => {
    const headers = { ...preflightHeaders, 'access-control-request-headers': 'x-ms-version, X-MS-Date' };
    expect(preflight({ method: 'OPTIONS', headers }, [exact])).toEqual({
      status: 200,
      headers: {
        'Access-Control-Allow-Origin': 'http://one',
        'Access-Control-Allow-Methods': 'PUT',
        'Access-Control-Allow-Headers': 'x-ms-version, X-MS-Date',
        'Access-Control-Max-Age': 60,
        'Access-Control-Allow-Credentials': 'true',
      },
    });
  });

  it('has no Access-Control-Allow-Headers where no headers were announced', () => {
    const { headers } = preflight({ method: 'OPTIONS', headers: preflightHeaders }, [open]);
    expect(headers?.['Access-Control-Allow-Headers']).toBeUndefined();
    expect(headers?.['Access-Control-Allow-Origin']).toBe('http://one');
  });

  it('is refused where no rule matches', () => {
    const cases: [Record<string, string>, CorsRule[]][] = [
      [preflightHeaders, []],
      [{ ...preflightHeaders, origin: 'http://two' }, [exact]],
      [{ ...preflightHeaders, 'access-control-request-method': 'DELETE' }, [exact]],
      [{ ...preflightHeaders, 'access-control-request-headers': 'x-ms-date,other' }, [exact]],
    ];
    for (const [headers, rules] of cases) {
      const { status, code } = refusalOf(headers, rules);
      expect([status, code]).toEqual([403, 'CorsPreflightFailure']);
    }
  });

  it.each([
    ['Origin', { 'access-control-request-method': 'PUT' }],
    ['Origin', { ...preflightHeaders, origin: '' }],
    ['Access-Control-Request-Method', { origin: 'http://one' }],
  ])('is refused without %s', (name, headers) => {
    const { status, code, details } = refusalOf(headers, [open]);
    expect([status, code, details?.HeaderName]).toEqual([400, 'InvalidHeaderValue', name]);
  });
});

describe('A reply to a web page', () => {
  it('names the origin if a rule names it, with the exposed headers of that rule', () => {
    expect(corsHeaders({ method: 'GET', headers: { origin: 'http://one' } }, [exact], reply)).toEqual({
      'Access-Control-Allow-Origin': 'http://one',
      'Access-Control-Expose-Headers': 'ETag,x-ms-meta-a',
      'Access-Control-Allow-Credentials': 'true',
      Vary: 'Origin',
    });
  });

  it('allows any origin if the rule does, and then without credentials', () => {
    const headers = corsHeaders({ method: 'PUT', headers: { origin: 'http://one' } }, [open], reply);
    expect(headers).toEqual({
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Expose-Headers':
        'x-ms-request-id,x-ms-client-request-id,Server,x-ms-version,ETag,x-ms-meta-a,Content-Length,Date,Transfer-Encoding',
    });
  });

  it('has Vary where another origin would get another reply', () => {
    expect(corsHeaders({ method: 'GET', headers: { origin: 'http://two' } }, [exact], reply)).toEqual({
      Vary: 'Origin',
    });
    expect(corsHeaders({ method: 'HEAD', headers: {} }, [exact], reply)).toEqual({ Vary: 'Origin' });
    expect(corsHeaders({ method: 'PUT', headers: { origin: 'http://two' } }, [exact], reply)).toBeUndefined();
    expect(corsHeaders({ method: 'GET', headers: { origin: 'http://one' } }, [], reply)).toBeUndefined();
  });
});
