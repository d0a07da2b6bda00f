import { describe, expect, it } from 'vitest';
import type { StorageError } from '../../services/common/errors.ts';
import type { Operation, Request } from '../operation.ts';
import { queueOperations } from '../queue/operations.ts';
import { tableOperations } from '../table/operations.ts';
import { blobOperations } from './operations.ts';

/** What would go wrong if each were ignored. */
const CHANGES: Readonly<
  Record<string, 'what is answered' | 'what is stored' | 'whether it happens' | 'nothing of that'>
> = {
  '?versionid': 'what is answered',
  'x-ms-if-tags': 'whether it happens',
  'x-ms-source-if-tags': 'whether it happens',
  'x-ms-source-content-md5': 'whether it happens',
  'x-ms-source-encryption-key': 'whether it happens',
  'x-ms-source-encryption-key-sha256': 'whether it happens',
  'x-ms-source-encryption-algorithm': 'whether it happens',
  'x-ms-file-request-intent': 'whether it happens',
  'x-ms-copy-source-tag-option': 'nothing of that',
  'x-ms-copy-source-authorization': 'nothing of that',
  'x-ms-expiry-option': 'nothing of that',
  'x-ms-encryption-key': 'nothing of that',
  'x-ms-encryption-key-sha256': 'nothing of that',
  'x-ms-encryption-scope': 'nothing of that',
  'x-ms-default-encryption-scope': 'nothing of that',
  'x-ms-deny-encryption-scope-override': 'nothing of that',
  'x-ms-immutability-policy-until-date': 'nothing of that',
  'x-ms-immutability-policy-mode': 'nothing of that',
  'x-ms-legal-hold': 'nothing of that',
};

const rows: readonly Operation<never>[] = [...blobOperations, ...queueOperations, ...tableOperations];
const cases = rows.flatMap((row) =>
  [...row.unsupported, ...row.unsupportedUnlessLenient].map((name) => [row, name] as const),
);

describe('A header or parameter of a feature that is not implemented', () => {
  it('is in this table, and nothing else is', () => {
    expect(new Set(cases.map(([, name]) => name))).toEqual(new Set(Object.keys(CHANGES)));
  });

  for (const [row, name] of cases) {
    const harmless = CHANGES[name] === 'nothing of that';
    it(`${name} of ${row.name} is ${harmless ? 'ignored with --loose only' : 'refused with --loose, too'}`, () => {
      const refusal = { status: 501, message: expect.stringContaining(name.replace('?', '')) };
      expect(fault(row, name, false)).toMatchObject(refusal);
      if (harmless) expect(fault(row, name, true)?.status).not.toBe(501);
      else expect(fault(row, name, true)).toMatchObject(refusal);
    });
  }
});

function fault(row: Operation<never>, name: string, lenient: boolean): StorageError | undefined {
  try {
    row.read(requestWith(name), lenient);
    return undefined;
  } catch (error) {
    return error as StorageError;
  }
}

function requestWith(name: string): Request {
  const query = name.startsWith('?') ? { [name.slice(1)]: 'x' } : {};
  const headers = name.startsWith('?') ? {} : { [name]: 'x' };
  return {
    ...{ id: 'id', method: 'PUT', rawPath: '/a/c/b', rawQuery: '', account: 'a', secondary: false, base: '/a' },
    readsHosts: true,
    ...{ secure: false, container: 'container', item: 'b', query, headers, rawHeaders: [], version: '' },
  };
}
