/** Entity group transaction: the rules by which a list of changes can be one transaction, and the ETags that its conditions compare. */

import { TICKS_PER_SECOND, ticksFromUnix, unixFromTicks } from '../../base/time.ts';
import { foldTableName } from '../names.ts';

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
    if (rowKeys.add(member.rowKey).size === index) return { index, fault: 'InvalidDuplicateRow' };
  }
  return undefined;
}

function isSameTable(one: string, other: string): boolean {
  return one === other || foldTableName(one) === foldTableName(other);
}

const ETAG = /^W\/"([^"]*)"$/;
const INSTANT = /^datetime'(\d{4}-\d\d-\d\dT\d\d)(?::|%3A)(\d\d)(?::|%3A)(\d\d)(?:\.(\d{1,7}))?Z'$/i;

let lastVersion = -1n;
let lastEtag = '';
let lastSecond = -1n;
let lastText = '';

/** W/"datetime'2017-11-10T02%3A47%3A54.9431592Z'", without trailing zeros of the fraction. Memoized: rows of a page often share a second, those of a batch an instant. */
export function formatTableEtag(version: bigint): string {
  if (version === lastVersion) return lastEtag;
  const second = version / TICKS_PER_SECOND;
  if (second !== lastSecond) {
    lastText = new Date(unixFromTicks(version)).toISOString().slice(0, 19).replaceAll(':', '%3A');
    lastSecond = second;
  }
  const fraction = Number(version - second * TICKS_PER_SECOND);
  const digits = fraction === 0 ? '' : `.${String(fraction).padStart(7, '0').replace(/0+$/, '')}`;
  lastEtag = `W/"datetime'${lastText}${digits}Z'"`;
  lastVersion = version;
  return lastEtag;
}

/** Which version of the entity meets If-Match; 'none': an ETag that no entity can have. */
export type EtagMatch = 'any' | 'none' | bigint;

/** Undefined: malformed, or more than one ETag. */
export function parseIfMatch(text: string): EtagMatch | undefined {
  if (text === '*') return 'any';
  const etag = ETAG.exec(text)?.[1];
  if (etag === undefined) return undefined;
  const [, hour, minute, second, fraction = ''] = INSTANT.exec(etag) ?? [];
  const milliseconds = Date.parse(`${hour}:${minute}:${second}Z`);
  if (Number.isNaN(milliseconds)) return 'none';
  return ticksFromUnix(milliseconds) + BigInt(fraction.padEnd(7, '0'));
}
