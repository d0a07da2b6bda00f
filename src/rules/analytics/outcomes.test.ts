import { describe, expect, it } from 'vitest';
import { isLogged, outcomeColumn, statusText } from './outcomes.ts';

const cells: [status: number | undefined, code: string | undefined, column: string][] = [
  [200, undefined, 'Success'],
  [206, undefined, 'Success'],
  [304, 'ConditionNotMet', 'ClientOtherError'],
  [400, 'InvalidInput', 'ClientOtherError'],
  [400, 'InvalidAuthenticationInfo', 'AuthorizationError'],
  [401, 'NoAuthenticationInformation', 'AuthorizationError'],
  [403, 'AuthenticationFailed', 'AuthorizationError'],
  [404, 'BlobNotFound', 'ClientOtherError'],
  [412, 'ConditionNotMet', 'ClientOtherError'],
  [500, 'InternalError', 'ServerOtherError'],
  [500, 'OperationTimedOut', 'ServerTimeoutError'],
  [501, 'NotImplemented', 'ServerOtherError'],
  [503, 'ServerBusy', 'ThrottlingError'],
  [undefined, undefined, 'NetworkError'],
];

describe('What became of a request', () => {
  it.each(cells)('that was answered %s %s is %s, with the kind of credentials before it', (status, code, column) => {
    expect(outcomeColumn({ status, code, by: 'key' })).toBe(column);
    expect(outcomeColumn({ status, code, by: 'token' })).toBe(column);
    expect(outcomeColumn({ status, code, by: 'SAS' })).toBe(`SAS${column}`);
    expect(outcomeColumn({ status, code, by: 'anonymous' })).toBe(`Anonymous${column}`);
  });

  it('is the code of the error in the log, since a version', () => {
    const missing = { status: 404, code: 'BlobNotFound', by: 'SAS' } as const;
    expect(statusText({ ...missing, version: '2017-04-17' })).toBe('BlobNotFound');
    expect(statusText({ ...missing, version: '2016-05-31' })).toBe('SASClientOtherError');
    expect(statusText({ ...missing, version: '' })).toBe('SASClientOtherError');
  });

  it('is logged for anonymous requests only if they succeeded or failed by a fault of the server', () => {
    const logged = cells.filter(([status, code]) => isLogged({ status, code, by: 'anonymous' }));
    expect(logged.map(([status, code]) => [status, code])).toEqual([
      [200, undefined],
      [206, undefined],
      [304, 'ConditionNotMet'],
      [500, 'InternalError'],
      [500, 'OperationTimedOut'],
      [501, 'NotImplemented'],
      [503, 'ServerBusy'],
    ]);
    expect(cells.every(([status, code]) => isLogged({ status, code, by: 'SAS' }))).toBe(true);
  });
});
