/**
 * Copy-on-write of map pages: every change of a page goes through `PageChanges`, which keeps the rows that held generations need, applies
 * voids that the page has not seen, and counts the references of all rows together.
 */
import type { Row, Snapshot, Transaction } from '../../partition/partition.ts';
import { RefcountChanges } from '../refcounts.ts';
import { type AccountId, type ContentId, formatId } from '../rows.ts';
import {
  applyVoid,
  chunksIn,
  emptyPage,
  isFull,
  type MapPage,
  type MapSegment,
  unseenVoids,
  wantsMerge,
  withoutZeros,
} from './map-page.ts';
import { decodeMapPage, encodeMapPage } from './map-page-codec.ts';
import { heldIn, heldKey, mapPageKey, olderPageKey, queueRanges, type RangeMap } from './map-rows.ts';
import { joinZeros } from './sectors.ts';

/** The page takes no more short writes or chunks before it is merged. */
export class MapPageFull extends Error {
  override readonly name = 'MapPageFull';
  readonly content: ContentId;
  readonly offset: number;

  constructor(content: ContentId, offset: number) {
    super(`the page of content ${formatId(content)} at ${offset} is full`);
    this.content = content;
    this.offset = offset;
  }
}

/** The changes of some map pages in one transaction. */
export class PageChanges {
  readonly refs = new RefcountChanges();
  /** Entries were added to the deletion queue. */
  hasQueued = false;
  readonly #tx: Transaction;
  readonly #account: AccountId;
  readonly #map: RangeMap;

  constructor(tx: Transaction, account: AccountId, map: RangeMap) {
    this.#tx = tx;
    this.#account = account;
    this.#map = map;
  }

  /** @param change gets the page with all voids applied; undefined: it stays like that */
  async rewrite(
    offset: number,
    row: Pick<Row, 'value'> | undefined,
    change: (page: MapPage) => Pick<MapPage, 'segments' | 'nextPiece'> = (page) => page,
  ): Promise<void> {
    const tx = this.#tx;
    const { gen, newest, lastVoid, isEnded, id } = this.#map;
    const before = row && decodeMapPage(row);
    for (const chunk of before ? chunksIn(before.segments) : []) this.refs.add(chunk, -1);
    let page = before ? await this.#applyVoids(offset, before) : emptyPage(tx.timestamp, gen, lastVoid);
    if (before && page.born <= newest) this.#keepOlder(offset, page, gen);
    const { segments: changed, nextPiece } = change(page);
    // Generations can be compared only with one that is held.
    const segments = newest === 0 ? withoutZeros(changed) : joinZeros(changed);
    if (isFull(segments)) throw new MapPageFull(id, offset);
    page = { ...page, born: gen, seen: lastVoid, nextPiece, segments };
    const key = mapPageKey(this.#account, id, offset);
    if (segments.length === 0 || isEnded) {
      tx.remove(key);
      return;
    }
    const isQueued = page.isQueued || this.#queueMerge(offset, segments);
    for (const chunk of chunksIn(segments)) this.refs.add(chunk, 1);
    tx.put(key, encodeMapPage({ ...page, isQueued }));
  }

  /** Held generations before and after a void see different bytes: the page is split where one of them is in between. */
  async #applyVoids(offset: number, before: MapPage): Promise<MapPage> {
    const { gen, voids, id } = this.#map;
    let page = before;
    for (const each of unseenVoids(before, offset, voids, gen)) {
      if (page.born < each.gen) {
        if (await isHeld(this.#tx, this.#account, id, page.born, each.gen)) this.#keepOlder(offset, page, each.gen);
        page = { ...page, born: each.gen };
      }
      page = { ...page, segments: applyVoid(page.segments, offset, each) };
    }
    return page;
  }

  #keepOlder(offset: number, page: MapPage, died: number): void {
    if (page.segments.length === 0) return;
    const { segments } = page;
    this.#queueMerge(offset, segments, died);
    for (const chunk of chunksIn(segments)) this.refs.add(chunk, 1);
    this.#tx.put(olderPageKey(this.#account, this.#map.id, offset, died), encodeMapPage({ ...page, isQueued: false }));
  }

  #queueMerge(offset: number, segments: readonly MapSegment[], died?: number): boolean {
    if (!wantsMerge(segments)) return false;
    queueRanges(this.#tx, this.#account, { kind: 'merge', content: formatId(this.#map.id), offset, died });
    this.hasQueued = true;
    return true;
  }
}

/** Whether a generation from `from` to before `to` is held. */
export async function isHeld(
  at: Snapshot,
  account: AccountId,
  id: ContentId,
  from: number,
  to = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  const end = to === Number.POSITIVE_INFINITY ? heldIn(account, id).to : heldKey(account, id, to);
  const [held] = await at.scan({ from: heldKey(account, id, from), to: end }, { limit: 1 });
  return held !== undefined;
}
