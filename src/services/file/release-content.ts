/** The release of a file's content when the file is deleted, or another content takes its place. */
import type { ContentStore } from '../../content/content.ts';
import { parseId } from '../../content/rows.ts';
import type { Transaction } from '../../partition/partition.ts';
import type { AccountId } from '../common/storage.ts';
import { contentPlace } from './generations.ts';
import type { FileRecord } from './node-rows.ts';
import type { Share } from './rows.ts';

export interface FileContents {
  readonly account: AccountId;
  readonly content: Pick<ContentStore, 'decrefContent' | 'discardContent'> & {
    readonly ranges: Pick<ContentStore['ranges'], 'endCurrent' | 'release'>;
  };
}

/** A row that named the content is gone, with its share or for good. */
export async function dropFileContent(
  tx: Transaction,
  { account, content }: FileContents,
  { contentId }: Pick<FileRecord, 'contentId'>,
): Promise<void> {
  if (contentId !== undefined) await content.decrefContent(tx, account, parseId(contentId));
}

/**
 * After the node was written: if snapshots see it, the kept node is another user of the content, which ends with this generation.
 * @returns whether the sweeper has something to do
 */
export async function releaseFileContent(
  tx: Transaction,
  { account, content }: FileContents,
  { contentId }: Pick<FileRecord, 'contentId'>,
  share: Pick<Share, 'id' | 'gen'>,
): Promise<boolean> {
  if (contentId === undefined) return false;
  const id = parseId(contentId);
  if ((await content.decrefContent(tx, account, id)) === 'removed') return false;
  await content.ranges.endCurrent(tx, account, id, contentPlace(share));
  return true;
}
