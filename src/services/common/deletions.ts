/** Deletion queue: the kinds of its entries. Each names rows that no request can reach any more; the sweeper removes them. */
import type { RangesDeletion } from '../../content/ranges/map-rows.ts';
import type { ContentDeletion } from '../../content/rows.ts';
import type { Key } from '../../partition/keys.ts';
import type { Row } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';

export type Deletion =
  | ContentDeletion
  | RangesDeletion
  | { readonly kind: 'container'; readonly container: string }
  | { readonly kind: 'share'; readonly share: string }
  /** A snapshot of a share that is deleted. `next`: it is not held any more, and history from this key on is still to be looked at, in base64. */
  | { readonly kind: 'shareSnapshot'; readonly share: string; readonly gen: number; readonly next?: string }
  /** The snapshots of a blob that its mark says are deleted. */
  | { readonly kind: 'snapshots'; readonly container: string; readonly blob: string }
  /** Uncommitted blocks. `uncounted`: a content owns the references of their chunks. */
  | { readonly kind: 'stage'; readonly stage: string; readonly uncounted?: true }
  /** All rows whose keys begin with one of these prefixes, in base64. Such rows refer to no others. */
  | { readonly kind: 'rows'; readonly under: readonly string[] };

export const deletionOfRows = (...prefixes: readonly Key[]): Deletion => ({
  kind: 'rows',
  under: prefixes.map((key) => Buffer.from(key, 'latin1').toString('base64')),
});
export const keyPrefixesIn = ({ under }: Deletion & { kind: 'rows' }): Key[] =>
  under.map((key) => Buffer.from(key, 'base64').toString('latin1') as Key);

export const encodeDeletion = (deletion: Deletion): Buffer => encodeValue(deletion);
export const decodeDeletion = (row: Row): Deletion => decodeValue<Deletion>(row);
