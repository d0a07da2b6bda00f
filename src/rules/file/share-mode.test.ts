import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ALL,
  accessFrom,
  compatible,
  DELETE,
  isExcludedByLease,
  judgeOperation,
  type Open,
  READ,
  type SmbAccess,
  WRITE,
} from './share-mode.ts';

const bits = fc.integer({ min: 0, max: ALL });
const anOpen: fc.Arbitrary<Open> = fc.record({ access: bits, share: bits });
const OPERATIONS: readonly SmbAccess[] = ['none', 'read', 'write', 'replace', 'rename', 'delete', 'lease'];

describe('Two opens', () => {
  it('are judged alike, whichever is first', () => {
    fc.assert(fc.property(anOpen, anOpen, (one, other) => compatible(one, other) === compatible(other, one)));
  });

  it('stand together exactly if each bit of an access is shared by the other', () => {
    const each = [READ, WRITE, DELETE];
    const allows = (by: Open, of: Open) => each.every((bit) => !(of.access & bit) || (by.share & bit) !== 0);
    fc.assert(
      fc.property(anOpen, anOpen, (one, other) => {
        const takesPart = one.access !== 0 && other.access !== 0;
        expect(compatible(one, other)).toBe(!takesPart || (allows(one, other) && allows(other, one)));
      }),
    );
  });

  it('stand together less, the more they do, and more, the more they share', () => {
    fc.assert(
      fc.property(anOpen, anOpen, bits, (one, other, more) => {
        fc.pre(one.access !== 0);
        if (!compatible(one, other)) expect(compatible({ ...one, access: one.access | more }, other)).toBe(false);
        if (compatible(one, other)) expect(compatible({ ...one, share: one.share | more }, other)).toBe(true);
      }),
    );
  });

  it('are judged as in the examples of Managing File Locks', () => {
    expect(compatible({ access: READ, share: WRITE }, { access: WRITE, share: READ })).toBe(true);
    expect(compatible({ access: WRITE, share: READ }, { access: WRITE, share: WRITE })).toBe(false);
    expect(compatible({ access: WRITE, share: WRITE }, { access: WRITE, share: READ })).toBe(false);
  });
});

describe('The access of a mask', () => {
  it.each([
    ['FILE_READ_DATA', 0x1, READ],
    ['FILE_EXECUTE', 0x20, READ],
    ['FILE_WRITE_DATA', 0x2, WRITE],
    ['FILE_APPEND_DATA', 0x4, WRITE],
    ['DELETE', 0x1_0000, DELETE],
    ['attributes, READ_CONTROL and SYNCHRONIZE', 0x80 | 0x100 | 0x2_0000 | 0x10_0000, 0],
    ['all of a file', 0x1f_01ff, ALL],
  ])('of %s', (_, rights, access) => {
    expect(accessFrom(rights)).toBe(access);
  });
});

describe('An operation of REST', () => {
  const judge = (operation: SmbAccess, ...opens: Open[]) => judgeOperation(operation, opens) === 'proceed';

  it('is judged by each open on its own', () => {
    fc.assert(
      fc.property(fc.constantFrom(...OPERATIONS), fc.array(anOpen), (operation, opens) => {
        expect(judge(operation, ...opens)).toBe(opens.every((open) => judge(operation, open)));
      }),
    );
  });

  it('that counts as no access runs beside every open, and beside none everything runs', () => {
    fc.assert(fc.property(fc.array(anOpen), (opens) => judge('none', ...opens)));
    for (const operation of OPERATIONS) expect(judge(operation)).toBe(true);
  });

  it('runs beside an open of attributes alone, unless it deletes', () => {
    for (const operation of OPERATIONS)
      expect([operation, judge(operation, { access: 0, share: 0 })]).toEqual([operation, operation !== 'delete']);
  });

  it('that acquires a lease runs beside readers that share everything', () => {
    fc.assert(
      fc.property(anOpen, (open) => {
        fc.pre(open.access !== 0);
        expect(judge('lease', open)).toBe(open.access === READ && open.share === ALL);
      }),
    );
  });
});

it('A lease that is held excludes each open that writes or deletes', () => {
  for (let access = 0; access <= ALL; access++)
    expect(isExcludedByLease({ access })).toBe(access !== 0 && access !== READ);
});
