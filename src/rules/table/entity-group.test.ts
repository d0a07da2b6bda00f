import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CHANGES_MAX, findGroupFault, type GroupMember } from './entity-group.ts';

const member = (rowKey: string, partitionKey = 'p', table?: string): GroupMember => ({ table, partitionKey, rowKey });
const members = (count: number) => Array.from({ length: count }, (_, i) => member(`r${i}`));

describe('An entity group', () => {
  it('has at most 100 changes', () => {
    expect(findGroupFault('things', members(CHANGES_MAX))).toBeUndefined();
    expect(findGroupFault('things', members(CHANGES_MAX + 1))).toEqual({ index: 99, fault: 'TooManyChanges' });
  });

  it('is of one table, whose name may be written in any case', () => {
    expect(findGroupFault('things', [member('1'), member('2', 'p', 'THINGS')])).toBeUndefined();
    expect(findGroupFault('things', [member('1'), member('2', 'p', 'others')])).toEqual({
      index: 1,
      fault: 'CommandsInBatchActOnDifferentPartitions',
    });
  });

  it('has no fault of its own where one change stands alone, even without keys', () => {
    expect(findGroupFault('things', [])).toBeUndefined();
    expect(
      findGroupFault('things', [{ table: undefined, partitionKey: undefined, rowKey: undefined }]),
    ).toBeUndefined();
  });

  it('is at fault in the first member that differs from the first in its partition, or repeats an entity', () => {
    const anyMember = fc.record({
      table: fc.constantFrom(undefined, 'things', 'Things', 'others'),
      partitionKey: fc.constantFrom('', 'p', 'P'),
      rowKey: fc.oneof(fc.constantFrom('', '1', '2'), fc.string()),
    });
    const isOfGroup = ({ table = 'things' }: GroupMember) => table.toLowerCase() === 'things';
    fc.assert(
      fc.property(fc.array(anyMember, { maxLength: 8 }), (all) => {
        const expected = all
          .map((one, index) => {
            if (!isOfGroup(one) || one.partitionKey !== all[0]!.partitionKey) {
              return { index, fault: 'CommandsInBatchActOnDifferentPartitions' };
            }
            const isRepeated = all.findIndex(({ rowKey }) => rowKey === one.rowKey) < index;
            return isRepeated ? { index, fault: 'InvalidDuplicateRow' } : undefined;
          })
          .find((fault) => fault !== undefined);
        expect(findGroupFault('things', all)).toEqual(expected);
      }),
    );
  });

  it('stays without fault in every part of it, and in any order', () => {
    const group = fc.uniqueArray(fc.string(), { maxLength: CHANGES_MAX }).map((keys) => keys.map((key) => member(key)));
    const some = group.chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all)));
    fc.assert(
      fc.property(some, ([all, part]) => {
        expect(findGroupFault('things', all)).toBeUndefined();
        expect(findGroupFault('things', part)).toBeUndefined();
      }),
    );
  });
});
