/** The read of a blob's bytes from extents, whatever kind of content it has. */
import type { ContentRead } from '../../content/content.ts';
import { parseId } from '../../content/rows.ts';
import type { Snapshot } from '../../partition/partition.ts';
import type { PlanRanges } from '../common/content-reads.ts';
import type { Storage } from '../common/storage.ts';
import { type Blob, changesInPlace } from './rows.ts';

/** False: the content changes in place, and the read has to be held. */
export async function planBlobRead(
  at: Snapshot,
  { account, content }: Pick<Storage, 'account' | 'content'>,
  blob: Blob,
  read: ContentRead,
  range: { readonly from: number; readonly to: number },
  plan: PlanRanges,
): Promise<boolean> {
  const id = parseId(blob.contentId!);
  if (changesInPlace(blob)) return plan(at, await content.ranges.read(at, account, id), blob.generation, range);
  await read.plan(at, account, id, range.from, range.to);
  return true;
}
