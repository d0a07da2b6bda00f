/**
 * Groups: contents whose generations are held together, by one row for each held generation, however many contents there are. A generation
 * means the same in every content of a group.
 */
import type { Key, Range } from '../../partition/keys.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { encodeValue } from '../../partition/values.ts';
import type { AccountId, ContentId, Id } from '../rows.ts';
import { heldIn, heldKey, numbersAfterId, type RangeMap } from './map-rows.ts';

/** A content's place in a group. */
export interface GroupPlace {
  readonly group: string;
  /** The generation of the write that adds the content. */
  readonly gen: number;
}

/** The held generations of a group have the keys of those of a content. No process has the epoch 0, so no content has this id. */
export const groupId = (group: string): Id => ({ epoch: 0n, number: BigInt(group) });

export const groupHeldKey = (account: AccountId, group: string, gen: number): Key =>
  heldKey(account, groupId(group), gen);

export const groupHeldIn = (account: AccountId, group: string): Range => heldIn(account, groupId(group));

export function holdGroup(tx: Transaction, account: AccountId, group: string, gen: number): void {
  tx.put(groupHeldKey(account, group, gen), encodeValue({}));
}

/** What only this generation needed is removed by the caller, content by content: `RangeMaps.release`. */
export function releaseGroup(tx: Transaction, account: AccountId, group: string, gen: number): void {
  tx.remove(groupHeldKey(account, group, gen));
}

/** Whether a generation from `from` to before `to` is held for all contents of the group. */
export function isGroupHeld(
  at: Snapshot,
  account: AccountId,
  group: string,
  from: number,
  to?: number,
): Promise<boolean> {
  return hasHeldRow(at, account, groupId(group), from, to);
}

/** In order. */
export async function groupGenerations(
  at: Pick<Snapshot, 'scan'>,
  account: AccountId,
  group: string,
  limit: number,
): Promise<number[]> {
  const rows = await at.scan(groupHeldIn(account, group), { limit });
  return rows.map(({ key }) => numbersAfterId(key)[0]!);
}

/** Whether a generation from `from` to before `to` is held, by a snapshot or read of this content or by its group. */
export async function isHeld(
  at: Snapshot,
  account: AccountId,
  { id, group, since = 0 }: Pick<RangeMap, 'id' | 'group' | 'since'>,
  from: number,
  to?: number,
): Promise<boolean> {
  if (await hasHeldRow(at, account, id, from, to)) return true;
  return group !== undefined && (await isGroupHeld(at, account, group, Math.max(from, since), to));
}

async function hasHeldRow(
  at: Snapshot,
  account: AccountId,
  id: ContentId,
  from: number,
  to: number | undefined,
): Promise<boolean> {
  if (to !== undefined && to <= from) return false;
  const end = to === undefined ? heldIn(account, id).to : heldKey(account, id, to);
  const [held] = await at.scan({ from: heldKey(account, id, from), to: end }, { limit: 1 });
  return held !== undefined;
}
