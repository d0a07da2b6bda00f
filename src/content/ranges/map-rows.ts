/** Rows of range maps: keys, deletion-queue entries, and the state that every function here gets. docs/adr/0031-content-that-changes-in-place.md */
import { decodeKey, encodeKey, type Key, keysUnder, type Range } from '../../partition/keys.ts';
import type { Row, Snapshot, Transaction } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import {
  type AccountId,
  type ContentId,
  contentKey,
  decodeContent,
  deletionKey,
  encodeContent,
  formatId,
  type Id,
  type RangeMapState,
  type RangesContent,
} from '../rows.ts';

/** A range map as its functions see it: the caller says which generation is written, and which is the newest that others hold. */
export interface RangeMap extends RangeMapState {
  readonly id: ContentId;
}

/** An entry of the deletion queue that concerns a range map, not all of its content. */
export type RangesDeletion =
  /** The generation is to be released. `pending`: a read of the process with this epoch still uses it. */
  | {
      readonly kind: 'generation';
      readonly content: string;
      readonly gen: number;
      /** Epoch and number of the read that holds it; undefined: a snapshot. */
      readonly read?: string | undefined;
      readonly pending?: true;
      /** The generation is not held any more. From here on, pages are still to be looked at: older ones, without `died` map pages. */
      readonly next?: { readonly offset: number; readonly died?: number };
    }
  /** Map pages from this offset on are to be cut. */
  | { readonly kind: 'void'; readonly content: string; readonly number: number; readonly from: number }
  /** A map page and the older pages of its offset are to be merged. */
  | { readonly kind: 'merge'; readonly content: string; readonly offset: number };

const SNAPSHOT: Id = { epoch: 0n, number: 0n };

export const mapPageKey = (account: AccountId, { epoch, number }: ContentId, offset: number): Key =>
  encodeKey([account, 'M', epoch, number, offset]);
export const mapPagesIn = (account: AccountId, { epoch, number }: ContentId): Range =>
  keysUnder([account, 'M', epoch, number]);
export const olderPageKey = (account: AccountId, { epoch, number }: ContentId, offset: number, died: number): Key =>
  encodeKey([account, 'o', epoch, number, offset, died]);
/** The older pages of one offset. */
export const olderPagesAt = (account: AccountId, { epoch, number }: ContentId, offset: number): Range =>
  keysUnder([account, 'o', epoch, number, offset]);
export const olderPagesIn = (account: AccountId, { epoch, number }: ContentId): Range =>
  keysUnder([account, 'o', epoch, number]);
export const heldKey = (account: AccountId, id: ContentId, gen: number, read: Id = SNAPSHOT): Key =>
  encodeKey([account, 'N', id.epoch, id.number, gen, read.epoch, read.number]);
export const heldIn = (account: AccountId, { epoch, number }: ContentId): Range =>
  keysUnder([account, 'N', epoch, number]);

/** Of the key of a map page, an older one, or a held generation: the parts after the content's id. */
export const numbersAfterId = (key: Key): number[] => decodeKey(key).slice(4).map(Number);

export async function readRangeMap(at: Snapshot, account: AccountId, id: ContentId): Promise<RangeMap> {
  const found = await findRanges(at, account, id);
  if (!found) throw new Error(`content ${formatId(id)} has no row, although it is in use`);
  const { gen, newest, voids, lastVoid, isEnded, endedIn, group, since, first, tail } = found;
  return { id, gen, newest, voids, lastVoid, isEnded, endedIn, group, since, first, tail };
}

/** Undefined: the content waits for the sweeper. */
export async function findRanges(at: Snapshot, account: AccountId, id: ContentId): Promise<RangesContent | undefined> {
  const row = await at.get(contentKey(account, id));
  const content = row && decodeContent(row);
  if (content && content.kind !== 'ranges') throw new Error(`content ${formatId(id)} does not change in place`);
  return content;
}

export async function updateRanges(
  tx: Transaction,
  account: AccountId,
  id: ContentId,
  changes: Partial<RangesContent>,
): Promise<void> {
  const content = await findRanges(tx, account, id);
  if (content) tx.put(contentKey(account, id), encodeContent({ ...content, ...changes }));
}

export const NEW_MAP: RangeMapState = { gen: 1, newest: 0, voids: [], lastVoid: 0 };

/** @returns the key of the entry */
export function queueRanges(tx: Transaction, account: AccountId, deletion: RangesDeletion): Key {
  const { kind, content } = deletion;
  const place = { generation: 'gen', void: 'number', merge: 'offset' }[kind] as keyof typeof deletion;
  const read = (deletion.kind === 'generation' && deletion.read) || '';
  const key = deletionKey(account, tx.timestamp, `${kind} ${content} ${deletion[place]} ${read}`);
  tx.put(key, encodeRangesDeletion(deletion));
  return key;
}

export const encodeRangesDeletion = (deletion: RangesDeletion): Buffer => encodeValue(deletion);
export const decodeRangesDeletion = (row: Row): RangesDeletion => decodeValue<RangesDeletion>(row);
