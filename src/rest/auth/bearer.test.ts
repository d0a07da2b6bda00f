import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ticksFromUnix } from '../../base/time.ts';
import { StorageError } from '../../services/common/errors.ts';
import type { ServiceName } from '../../services/common/names.ts';
import { checkBearer } from './bearer.ts';

const NOW = Date.parse('2024-06-01T12:00:00Z');
const SECONDS = NOW / 1_000;
const claims = {
  iss: 'https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/',
  aud: 'https://storage.azure.com',
  nbf: SECONDS - 60,
  exp: SECONDS + 3_600,
};

function token(payload: unknown): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `Bearer ${part({ typ: 'JWT', alg: 'RS256' })}.${part(payload)}.c2lnbmF0dXJl`;
}

function verdict(authorization: string, service: ServiceName = 'blob'): [number, string, string | undefined] | 'taken' {
  try {
    checkBearer(authorization, { account: 'mine', service, wall: () => ticksFromUnix(NOW) });
    return 'taken';
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    return [error.status, error.code, error.details?.AuthenticationErrorDetail];
  }
}

describe('a bearer token', () => {
  it.each([
    ['for storage', {}],
    ['for storage, with a slash', { aud: 'https://storage.azure.com/' }],
    ['for storage, by its id', { aud: 'e406a681-f3d4-42a8-90b6-c2b029497af1' }],
    ['for the account', { aud: 'https://mine.blob.core.windows.net' }],
    ['for the account, with a slash', { aud: 'https://mine.blob.core.windows.net/' }],
    ['for the account in another cloud', { aud: 'https://mine.blob.core.usgovcloudapi.net' }],
    ['for several', { aud: ['https://example.com', 'https://storage.azure.com'] }],
    ['of the newer endpoint', { iss: 'https://login.microsoftonline.com/ab1f708d/v2.0' }],
    ['of a clock that is a little ahead', { nbf: SECONDS + 299 }],
    ['that has just expired', { exp: SECONDS - 299 }],
  ])('%s is taken', (_, changed) => {
    expect(verdict(token({ ...claims, ...changed }))).toBe('taken');
  });

  it.each([
    ['of another issuer', { iss: 'https://example.com/' }, 'Issuer'],
    ['of an issuer that only begins alike', { iss: 'https://sts.windows.net.example.com/a' }, 'Issuer'],
    ['of an issuer without a tenant', { iss: 'https://sts.windows.net/' }, 'Issuer'],
    ['of no issuer', { iss: undefined }, 'Issuer'],
    ['for something else', { aud: 'https://management.azure.com' }, 'Audience'],
    ['for another account', { aud: 'https://other.blob.core.windows.net' }, 'Audience'],
    ['for another service', { aud: 'https://mine.queue.core.windows.net' }, 'Audience'],
    ['for nobody', { aud: undefined }, 'Audience'],
    ['for a list of other things', { aud: [1, null, {}] }, 'Audience'],
    ['from the future', { nbf: SECONDS + 301 }, 'Lifetime'],
    ['that has expired', { exp: SECONDS - 301 }, 'Lifetime'],
    ['without nbf', { nbf: undefined }, 'Lifetime'],
    ['without exp', { exp: undefined }, 'Lifetime'],
    ['with a text for a time', { exp: String(SECONDS + 10) }, 'Lifetime'],
    ['with a time beyond all', { exp: 1e300 }, 'Lifetime'],
  ])('%s is refused', (_, changed, detail) => {
    const answer = verdict(token({ ...claims, ...changed }));
    expect(answer).toEqual([401, 'InvalidAuthenticationInfo', expect.stringContaining(`${detail} validation failed`)]);
  });

  it.each(['blob', 'queue', 'table'] as const)('for the account is for one service of it: %s', (service) => {
    const authorization = token({ ...claims, aud: `https://mine.${service}.core.windows.net` });
    for (const asked of ['blob', 'queue', 'table'] as const) {
      const refused = [401, 'InvalidAuthenticationInfo', expect.stringContaining('Audience validation failed')];
      expect(verdict(authorization, asked)).toEqual(asked === service ? 'taken' : refused);
    }
  });

  it.each(['Bearer', 'Bearer ', 'bearer'])('must be there: %s', (authorization) => {
    expect(verdict(authorization)).toEqual([400, 'InvalidAuthenticationInfo', undefined]);
  });

  it.each(['Bearer abc', 'Bearer a.b', 'Bearer a.b.c', 'Bearer a.b.c d', token(1), token(null)])(
    'must be one: %s',
    (authorization) => {
      expect(verdict(authorization)).toEqual([401, 'InvalidAuthenticationInfo', 'The token is not a JSON Web Token.']);
    },
  );

  it.each(['bearer', 'BEARER'])('is one whatever the case of its scheme: %s', (scheme) => {
    expect(verdict(token(claims).replace('Bearer', scheme))).toBe('taken');
  });

  it('of any kind is taken or refused', () => {
    const refused = (authorization: string) => {
      expect(verdict(authorization)).not.toBe('taken');
    };
    fc.assert(fc.property(fc.json(), (json) => refused(token(JSON.parse(json)))));
    fc.assert(fc.property(fc.string(), (text) => refused(`Bearer ${text}`)));
  });
});
