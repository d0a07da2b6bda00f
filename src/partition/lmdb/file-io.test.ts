import { expect, it } from 'vitest';
import { isDiskFull } from './files.ts';

const failure = (code: string, syscall: string) => Object.assign(new Error(code), { code, syscall });

it('reports a disk without room as full, but never a sync that failed, whatever its reason', () => {
  for (const code of ['ENOSPC', 'EDQUOT']) {
    for (const call of ['write', 'open']) expect(isDiskFull(failure(code, call))).toBe(true);
    for (const call of ['fdatasync', 'fsync']) expect(isDiskFull(failure(code, call))).toBe(false);
  }
  expect(isDiskFull(failure('EIO', 'write'))).toBe(false);
  expect(isDiskFull(new Error('no code'))).toBe(false);
});
