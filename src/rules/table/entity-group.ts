/** Entity group transaction: the rules by which a list of changes can be one transaction. */
import { foldTableName } from './table-names.ts';

export const CHANGES_MAX = 100;

/** The entity that a change is about. A key can be missing here: that is a fault of the change, not of the group. */
export interface GroupMember {
  /** Undefined: the table of the group. */
  readonly table: string | undefined;
  readonly partitionKey: string | undefined;
  readonly rowKey: string | undefined;
}

export type GroupFault = 'CommandsInBatchActOnDifferentPartitions' | 'InvalidDuplicateRow' | 'TooManyChanges';

/** The first member that breaks a rule. Of too many changes Azure names the last that would be allowed, not the first in excess. */
export function findGroupFault(
  table: string,
  members: readonly GroupMember[],
): { readonly index: number; readonly fault: GroupFault } | undefined {
  const rowKeys = new Set<string | undefined>();
  for (let index = 0; index < members.length; index++) {
    const member = members[index]!;
    if (index === CHANGES_MAX) return { index: CHANGES_MAX - 1, fault: 'TooManyChanges' };
    if (!isSameTable(member.table ?? table, table) || member.partitionKey !== members[0]!.partitionKey) {
      return { index, fault: 'CommandsInBatchActOnDifferentPartitions' };
    }
    if (rowKeys.has(member.rowKey)) return { index, fault: 'InvalidDuplicateRow' };
    rowKeys.add(member.rowKey);
  }
  return undefined;
}

function isSameTable(one: string, other: string): boolean {
  return one === other || foldTableName(one) === foldTableName(other);
}
