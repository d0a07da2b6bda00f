import { expect, it } from 'vitest';
import { isFull } from './file-io.ts';

const failure = (code: string, syscall: string) => Object.assign(new Error(code), { code, syscall });

it('takes a disk without room for full, and no sync that failed, whatever its reason', () => {
  for (const code of ['ENOSPC', 'EDQUOT']) {
    for (const call of ['write', 'open']) expect(isFull(failure(code, call))).toBe(true);
    for (const call of ['fdatasync', 'fsync']) expect(isFull(failure(code, call))).toBe(false);
  }
  expect(isFull(failure('EIO', 'write'))).toBe(false);
  expect(isFull(new Error('no code'))).toBe(false);
});
