/** A second record for the bytes that a blob has: a copy, or a snapshot. */
import { parseId } from '../../content/rows.ts';
import type { Key } from '../../partition/keys.ts';
import type { Transaction } from '../../partition/partition.ts';
import type { Storage } from '../common/storage.ts';
import { type Blob, type ContainerId, inlineKey } from './rows.ts';

export interface ContentSource {
  readonly id: ContainerId;
  readonly name: string;
  readonly blob: Blob;
}

/**
 * The caller puts a record with the content id of the source: its content has one more reference; or its inline row gets a copy, under the
 * key of the returned function. In between the caller releases what it replaces, which may be the same content.
 */
export async function shareContent(
  tx: Transaction,
  { account, content }: Pick<Storage, 'account' | 'content'>,
  { id, name, blob }: ContentSource,
): Promise<(inline: Key) => void> {
  if (blob.contentId !== undefined) {
    await content.increfContent(tx, account, parseId(blob.contentId));
    return () => {};
  }
  const row = await tx.get(inlineKey(account, id, name, blob.snapshot));
  if (!row) throw new Error('a blob without its content');
  return (inline) => tx.put(inline, row.value);
}
