/** The release of a file's content when the file is deleted, or another content takes its place. */
import { parseId } from '../../content/rows.ts';
import type { Transaction } from '../../partition/partition.ts';
import type { Storage } from '../common/storage.ts';
import type { FileRecord } from './node-rows.ts';

/** @returns whether the sweeper has something to do */
export async function releaseFileContent(
  tx: Transaction,
  { account, content }: Pick<Storage, 'account' | 'content'>,
  { contentId }: Pick<FileRecord, 'contentId'>,
): Promise<boolean> {
  if (contentId === undefined) return false;
  const id = parseId(contentId);
  await content.decrefContent(tx, account, id);
  await content.ranges.endCurrent(tx, account, id);
  return true;
}
