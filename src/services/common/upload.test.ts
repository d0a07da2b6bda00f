import { describe, expect, it } from 'vitest';
import { checkHashes } from './upload.ts';

describe('The hashes that a request states', () => {
  const found = { md5: 'MMMM', crc64: 'CCCC' };

  it('match those that were calculated', () => {
    checkHashes({}, found);
    checkHashes({}, {});
    checkHashes({ md5: undefined, crc64: undefined }, found);
    checkHashes(found, found);
  });

  it('that differ are an error with both values', () => {
    const details = { UserSpecifiedMd5: 'XXXX', ServerCalculatedMd5: 'MMMM' };
    expect(() => checkHashes({ md5: 'XXXX' }, found)).toThrow(
      expect.objectContaining({ code: 'Md5Mismatch', details }),
    );
    expect(() => checkHashes({ ...found, crc64: 'XXXX' }, found)).toThrow(
      expect.objectContaining({
        code: 'Crc64Mismatch',
        details: { UserSpecifiedCrc64: 'XXXX', ServerCalculatedCrc64: 'CCCC' },
      }),
    );
  });

  it('are never taken for met if they were not calculated', () => {
    expect(() => checkHashes({ crc64: 'CCCC' }, { md5: 'MMMM' })).toThrow(expect.objectContaining({ status: 400 }));
  });
});
