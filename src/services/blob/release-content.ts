/** The release of a blob's content by a record that goes: the blob, or an older state of it. */
import type { ContentStore } from '../../content/content.ts';
import { parseId } from '../../content/rows.ts';
import type { Transaction } from '../../partition/partition.ts';
import type { AccountId } from '../common/storage.ts';
import { type BlobRecord, changesInPlace } from './rows.ts';

export type ReleasingStore = Pick<ContentStore, 'decrefContent'> & {
  readonly ranges: Pick<ContentStore['ranges'], 'release' | 'endCurrent'>;
};

/** Of a content that changes in place, the states that other records name stay. */
export async function releaseContent(
  tx: Transaction,
  { decrefContent, ranges }: ReleasingStore,
  account: AccountId,
  record: Pick<BlobRecord, 'contentId' | 'generation' | 'append' | 'page'>,
): Promise<void> {
  const id = parseId(record.contentId!);
  const { generation } = record;
  await decrefContent(tx, account, id);
  if (!changesInPlace(record)) return;
  if (generation === undefined) await ranges.endCurrent(tx, account, id);
  else ranges.release(tx, account, id, generation);
}
