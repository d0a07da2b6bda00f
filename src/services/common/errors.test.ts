import { describe, expect, it } from 'vitest';
import { REFUSAL_TEXT_MAX } from '../../base/input-limits.ts';
import { CorruptChunk, NoSpace } from '../../content/content.ts';
import { Unavailable } from '../../partition/partition.ts';
import { asStorageError, commonErrors, errorFactory, errorTable, StorageError } from './errors.ts';

const errors = errorTable({ TooGreen: [409, 'It is too green.'], Unripe: [304, 'It is not ripe.', 'TooGreen'] });
const fail = errorFactory(errors);

describe('StorageError', () => {
  it('carries code, status, message and details', () => {
    const error = fail('TooGreen', { Shade: 'lime' });
    expect(error).toMatchObject({
      code: 'TooGreen',
      status: 409,
      message: 'It is too green.',
      details: { Shade: 'lime' },
    });
    expect(error).toBeInstanceOf(Error);
  });

  it('truncates long texts that were sent', () => {
    const long = 'x'.repeat(1_000_000);
    const { message, details } = fail('TooGreen', { Shade: long, Hue: 'lime' }, long);
    expect(details).toEqual({ Shade: message, Hue: 'lime' });
    expect(message).toHaveLength(REFUSAL_TEXT_MAX + 3);
    expect(message.startsWith('xxx')).toBe(true);
    expect(fail('TooGreen', { Shade: long.slice(0, REFUSAL_TEXT_MAX) }).details?.Shade).toHaveLength(REFUSAL_TEXT_MAX);
  });

  it('goes by another code on the wire where the table says so', () => {
    expect(fail('Unripe')).toMatchObject({ code: 'TooGreen', status: 304 });
  });

  it('captures no stack and leaves the stacks of bugs alone', () => {
    expect(fail('TooGreen').stack).not.toContain('errors.test');
    expect(new Error('a bug').stack).toContain('errors.test');
  });

  it('does not compile with a misspelt code', () => {
    // @ts-expect-error there is no such code
    expect(() => fail('TooGren')).toThrow(TypeError);
  });
});

describe('asStorageError', () => {
  it('tells a caller to come again when the store is unavailable', () => {
    const error = asStorageError(new Unavailable('The disk is full.'));
    expect(error).toMatchObject({
      code: 'ServerBusy',
      status: 503,
      message: 'The disk is full.',
      retryAfterSeconds: 1,
    });
  });

  it('says the same where there is no room for bytes', () => {
    expect(asStorageError(new NoSpace('The disk is full.'))).toMatchObject({ code: 'ServerBusy', status: 503 });
  });

  it('keeps an answer and does not take a bug for one', () => {
    const error = new StorageError('BlobNotFound', 404, 'Not here.');
    expect(asStorageError(error)).toBe(error);
    expect(asStorageError(new TypeError('x is not a function'))).toBeUndefined();
  });
});

describe('the common codes', () => {
  it('have the statuses of the service', () => {
    expect(errorFactory(commonErrors)('NotModified')).toMatchObject({ status: 304, code: 'ConditionNotMet' });
    expect(commonErrors.ConditionNotMet[0]).toBe(412);
    for (const [status, message] of Object.values(commonErrors)) {
      expect(status).toBeGreaterThanOrEqual(304);
      expect(message).toMatch(/^[ -~]+$/);
    }
  });
});

describe('Damaged bytes', () => {
  it('are an answer that no SDK retries: not 408, 429 or 5xx', () => {
    const error = asStorageError(new CorruptChunk('chunk 1-1: its bytes are not what was written'));
    expect(error).toMatchObject({ status: 409, code: 'DataCorrupted', retryAfterSeconds: undefined });
    expect(error?.message).not.toMatch(/retry|chunk/i);
  });
});

describe('Too few files', () => {
  it.each(['EMFILE', 'ENFILE'])('are a reason to come again: %s', (code) => {
    const error = asStorageError(Object.assign(new Error('open'), { code }));
    expect(error).toMatchObject({ status: 503, code: 'ServerBusy', retryAfterSeconds: 1 });
  });
});
