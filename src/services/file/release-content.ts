/** The release of a file's content when the file is deleted, or another content takes its place. */
import type { ContentStore } from '../../content/content.ts';
import { parseId } from '../../content/rows.ts';
import type { Transaction } from '../../partition/partition.ts';
import type { AccountId } from '../common/storage.ts';
import type { FileRecord } from './node-rows.ts';

export interface FileContents {
  readonly account: AccountId;
  readonly content: Pick<ContentStore, 'decrefContent' | 'discardContent'> & {
    readonly ranges: Pick<ContentStore['ranges'], 'endCurrent'>;
  };
}

/** @returns whether the sweeper has something to do */
export async function releaseFileContent(
  tx: Transaction,
  { account, content }: FileContents,
  { contentId }: Pick<FileRecord, 'contentId'>,
): Promise<boolean> {
  if (contentId === undefined) return false;
  const id = parseId(contentId);
  await content.decrefContent(tx, account, id);
  await content.ranges.endCurrent(tx, account, id);
  return true;
}
