import { describe, expect, it } from 'vitest';
import { ticksFromUnix } from '../../base/time.ts';
import { StorageError } from '../../services/common/errors.ts';
import { type Circumstances, checkSas, mergePolicy } from './sas-checks.ts';
import { parseSas, type SentServiceSas } from './sas-parser.ts';

const at = (text: string) => ticksFromUnix(Date.parse(text));
const here: Circumstances = { nowTicks: at('2024-06-01T12:00:00Z'), remoteAddress: '10.0.0.5', secure: true };

function sasOf(fields: Record<string, string>): SentServiceSas {
  return parseSas({ sv: '2021-06-08', sr: 'c', sig: 'abc=', ...fields }, 'blob') as SentServiceSas;
}

function refusal(run: () => unknown): StorageError {
  try {
    run();
  } catch (error) {
    if (error instanceof StorageError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

const detailOf = (fields: Record<string, string>) =>
  refusal(() => checkSas(sasOf({ sp: 'r', ...fields }), here)).details?.AuthenticationErrorDetail;

describe('a signed SAS', () => {
  it('is valid from its start until its expiry', () => {
    const sas = sasOf({ sp: 'r', st: '2024-06-01T12:00:00Z', se: '2024-06-01T12:00:01Z' });
    const verdictAt = (nowTicks: bigint) => () => checkSas(sas, { ...here, nowTicks });
    expect(verdictAt(here.nowTicks)).not.toThrow();
    expect(verdictAt(here.nowTicks + 9_999_999n)).not.toThrow();
    expect(verdictAt(here.nowTicks - 1n)).toThrow(StorageError);
    expect(verdictAt(here.nowTicks + 10_000_000n)).toThrow(StorageError);
  });

  it('says why it is not valid now', () => {
    expect(detailOf({ se: '2024-06-01T11:00:00Z' })).toBe(
      'Signed expiry time [Sat, 01 Jun 2024 11:00:00 GMT] must be after signed start time [Sat, 01 Jun 2024 12:00:00 GMT]',
    );
    expect(detailOf({ st: '2024-06-01T12:30:00Z', se: '2024-06-01T13:00:00Z' })).toBe(
      'Signature not valid in the specified time frame: Start [Sat, 01 Jun 2024 12:30:00 GMT] - Expiry [Sat, 01 Jun 2024 13:00:00 GMT] - Current [Sat, 01 Jun 2024 12:00:00 GMT]',
    );
    expect(detailOf({ st: '2024-06-01', se: '2024-06-01T11:00:00Z' })).toContain(
      'Current [Sat, 01 Jun 2024 12:00:00 GMT]',
    );
    expect(detailOf({ st: '2024-06-02', se: '2024-06-01' })).toContain('must be after signed start time');
  });

  it('for HTTPS is refused over HTTP', () => {
    const sas = sasOf({ sp: 'r', se: '2030-01-01', spr: 'https' });
    expect(() => checkSas(sas, here)).not.toThrow();
    expect(refusal(() => checkSas(sas, { ...here, secure: false }))).toMatchObject({
      status: 403,
      code: 'AuthorizationProtocolMismatch',
    });
    const both = sasOf({ sp: 'r', se: '2030-01-01', spr: 'https,http' });
    expect(() => checkSas(both, { ...here, secure: false })).not.toThrow();
  });

  it.each([
    ['10.0.0.5', '10.0.0.5', true],
    ['10.0.0.5', '10.0.0.6', false],
    ['10.0.0.5', '10.0.0.5-10.0.0.9', true],
    ['10.0.0.9', '10.0.0.5-10.0.0.9', true],
    ['10.0.0.10', '10.0.0.5-10.0.0.9', false],
    ['10.0.1.7', '10.0.0.5-10.0.0.9', false],
    ['250.0.0.1', '200.0.0.0-255.255.255.255', true],
    ['::ffff:10.0.0.5', '10.0.0.5', true],
    ['::ffff:10.0.0.4', '10.0.0.5', false],
    ['::1', '0.0.0.0-255.255.255.255', false],
    [undefined, '10.0.0.5', false],
  ])('used from %s is for %s: %s', (remoteAddress, sip, good) => {
    const sas = sasOf({ sp: 'r', se: '2030-01-01', sip });
    const run = () => checkSas(sas, { ...here, remoteAddress });
    if (good) expect(run).not.toThrow();
    else expect(refusal(run)).toMatchObject({ status: 403, code: 'AuthorizationSourceIPMismatch' });
  });
});

describe('a stored access policy', () => {
  it('supplies the fields that the signature leaves open', () => {
    const stored = { start: '2024-01-01T00:00:00.0000000Z', expiry: '2030-01-01T00:00:00.0000000Z', permission: 'rw' };
    const merged = mergePolicy(sasOf({ si: 'p' }), stored);
    expect(merged).toMatchObject({ start: stored.start, expiry: stored.expiry, permissions: 'rw' });
    expect(() => checkSas(merged, here)).not.toThrow();
    expect(mergePolicy(sasOf({ si: 'p', sp: 'r' }), { expiry: stored.expiry })).toMatchObject({ permissions: 'r' });
    expect(mergePolicy(sasOf({ si: 'p', sp: 'r', se: '2030-01-01' }), {})).toMatchObject({ expiry: '2030-01-01' });
  });

  it.each([
    ['sp', { sp: 'r' }, { permission: 'r' }],
    ['se', { se: '2030-01-01' }, { expiry: '2030-01-01T00:00:00.0000000Z' }],
    ['st', { st: '2020-01-01' }, { start: '2020-01-01T00:00:00.0000000Z' }],
  ])('and the signature may not both say %s', (_, sent, stored) => {
    const error = refusal(() => mergePolicy(sasOf({ si: 'p', ...(sent as Record<string, string>) }), stored));
    expect(error).toMatchObject({ status: 403, code: 'AuthenticationFailed' });
  });

  it('invalidates its signatures when it is removed', () => {
    expect(refusal(() => mergePolicy(sasOf({ si: 'p', sp: 'r', se: '2030-01-01' }), undefined))).toMatchObject({
      status: 403,
      code: 'AuthenticationFailed',
    });
  });

  it('must supply every field that the signature leaves out', () => {
    const verdictOf = (stored: { expiry?: string; permission?: string }) =>
      refusal(() => checkSas(mergePolicy(sasOf({ si: 'p' }), stored), here)).details?.AuthenticationErrorDetail;
    expect(verdictOf({ permission: 'r' })).toBe('se is mandatory. Cannot be empty');
    expect(verdictOf({ expiry: '2030-01-01T00:00:00.0000000Z' })).toBe('sp is mandatory. Cannot be empty');
  });
});
