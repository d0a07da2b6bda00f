/** The sweeper's part of a void: pages that nobody writes are cut, and then the void is forgotten. */
import type { Key } from '../../partition/keys.ts';
import type { Transaction } from '../../partition/partition.ts';
import { type AccountId, parseId } from '../rows.ts';
import { MAP_PAGE_BYTES } from './map-page.ts';
import { decodeMapPage } from './map-page-codec.ts';
import {
  encodeRangesDeletion,
  findRanges,
  mapPageKey,
  numbersAfterId,
  type RangesDeletion,
  updateRanges,
} from './map-rows.ts';
import { PageChanges } from './pages.ts';

/** Pages of a slice: each may have 64 chunks and 128 pieces, and become two rows. */
const SLICE_PAGES = 5;

/** True once only the entry is left. */
export async function sweepVoid(
  tx: Transaction,
  account: AccountId,
  key: Key,
  deletion: RangesDeletion & { readonly kind: 'void' },
): Promise<boolean> {
  const id = parseId(deletion.content);
  const content = await findRanges(tx, account, id);
  const found = content?.voids.find(({ number }) => number === deletion.number);
  if (!content || !found) return true;
  const range = { from: mapPageKey(account, id, deletion.from), to: mapPageKey(account, id, found.to) };
  const rows = await tx.scan(range, { limit: SLICE_PAGES });
  const last = rows.at(-1);
  if (!last) {
    await updateRanges(tx, account, id, { voids: content.voids.filter((each) => each !== found) });
    return true;
  }
  // Of a group, the generations that are held may be younger than the content's own: each page asks for its own.
  const newest = content.group === undefined ? content.newest : content.gen - 1;
  const changes = new PageChanges(tx, account, { id, ...content, newest });
  for (const row of rows)
    if (decodeMapPage(row).seen < found.number) await changes.rewrite(numbersAfterId(row.key)[0]!, row);
  await changes.refs.apply(tx, account);
  tx.put(key, encodeRangesDeletion({ ...deletion, from: numbersAfterId(last.key)[0]! + MAP_PAGE_BYTES }));
  return false;
}
