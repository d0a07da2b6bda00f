/**
 * Copy-on-write of map pages: every change of a page goes through `PageChanges`, which keeps the rows that held generations need, applies
 * voids that the page has not seen, and counts the references of all rows together.
 */
import type { Row, Transaction } from '../../partition/partition.ts';
import { RefcountChanges } from '../refcounts.ts';
import { type AccountId, type ContentId, formatId } from '../rows.ts';
import { isHeld } from './groups.ts';
import {
  applyVoid,
  type ChunkSource,
  emptyPage,
  hasOverwritten,
  isFull,
  type MapPage,
  measure,
  unseenVoids,
  wantsMerge,
  withoutZeros,
} from './map-page.ts';
import { decodeMapPage, encodeMapPage } from './map-page-codec.ts';
import { mapPageKey, olderPageKey, queueRanges, type RangeMap } from './map-rows.ts';
import { type PagePlace, removePieces, storePieces, withBytes } from './pieces.ts';
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

type ChangedPage = Pick<MapPage, 'segments' | 'nextPiece'>;

/** The changes of some map pages in one transaction. */
export class PageChanges {
  readonly refs = new RefcountChanges();
  /** Entries were added to the deletion queue. */
  hasQueued = false;
  // Not #private: Node 20 takes longer to make such fields than to read a row.
  private readonly tx: Transaction;
  private readonly account: AccountId;
  private readonly map: RangeMap;

  constructor(tx: Transaction, account: AccountId, map: RangeMap) {
    this.tx = tx;
    this.account = account;
    this.map = map;
  }

  /** @param change gets the page with all voids applied; pieces that it adds have their bytes. Undefined: the page stays like that */
  async rewrite(
    offset: number,
    row: Pick<Row, 'value'> | undefined,
    change: (page: MapPage) => ChangedPage | Promise<ChangedPage> = (page) => page,
  ): Promise<void> {
    const tx = this.tx;
    const { gen, newest, voids, lastVoid, isEnded, id } = this.map;
    const place = this.place(offset);
    const before = row && decodeMapPage(row);
    const found = before ?? emptyPage(tx.timestamp, gen, lastVoid);
    const page = before && voids.length > 0 ? await this.applyVoids(offset, before) : found;
    const isKept = before !== undefined && page.born <= newest && (await this.isSeen(page));
    const isMergedWithOlder = isKept && (await this.keepOlder(offset, page, gen));
    const { segments: changed, nextPiece } = await change(page);
    // Generations can be compared only with one that is held.
    const left = newest === 0 ? withoutZeros(changed) : joinZeros(changed);
    const key = mapPageKey(this.account, id, offset);
    const isGone = left.length === 0 || isEnded === true;
    const segments = isGone ? [] : storePieces(tx, place, left);
    const use = measure(segments);
    if (isFull(use)) throw new MapPageFull(id, offset);
    removePieces(tx, place, found.use.pieces, use.pieces);
    const kept = this.countChanges(found.use.chunks, use.chunks) ? page.kept : 0;
    if (isGone) {
      tx.remove(key);
      return;
    }
    const isQueued = page.isQueued || isMergedWithOlder || this.queueMerge(offset, wantsMerge(use, kept));
    const { made } = page;
    tx.put(key, encodeMapPage({ made, born: gen, seen: lastVoid, isQueued, nextPiece, kept, segments }, use));
  }

  /** A chunk that stays has the same object. @returns whether all of them stay */
  private countChanges(before: readonly ChunkSource[], after: readonly ChunkSource[]): boolean {
    if (before.length === after.length && before.every((source, i) => source === after[i])) return true;
    const left = new Set(after);
    const gone = before.filter((source) => !left.delete(source));
    for (const { chunk } of gone) this.refs.add(chunk, -1);
    for (const { chunk } of left) this.refs.add(chunk, 1);
    return gone.length === 0;
  }

  private place(offset: number): PagePlace {
    return { account: this.account, id: this.map.id, offset };
  }

  /** Held generations before and after a void see different bytes: the page is split where one of them is in between. */
  private async applyVoids(offset: number, before: MapPage): Promise<MapPage> {
    const { gen, voids } = this.map;
    let page = before;
    for (const each of unseenVoids(before, offset, voids, gen)) {
      if (page.born < each.gen) {
        if (await isHeld(this.tx, this.account, this.map, page.born, each.gen))
          await this.keepOlder(offset, page, each.gen);
        page = { ...page, born: each.gen };
      }
      page = { ...page, segments: applyVoid(page.segments, offset, each) };
    }
    return page;
  }

  /** Of a group, `newest` may have been released since, or be older than the content. */
  private async isSeen({ born }: MapPage): Promise<boolean> {
    const { group, gen } = this.map;
    return group === undefined || isHeld(this.tx, this.account, this.map, born, gen);
  }

  /**
   * The row has the bytes of its short writes: their own rows belong to the map page, which changes them.
   * @returns whether the deletion queue got an entry
   */
  private async keepOlder(offset: number, page: MapPage, died: number): Promise<boolean> {
    if (page.segments.length === 0) return false;
    const segments = await withBytes(this.tx, this.place(offset), page.segments);
    const use = measure(segments);
    for (const { chunk } of use.chunks) this.refs.add(chunk, 1);
    const key = olderPageKey(this.account, this.map.id, offset, died);
    this.tx.put(key, encodeMapPage({ ...page, segments, isQueued: false, kept: 0 }, use));
    return !page.isQueued && this.queueMerge(offset, wantsMerge(use, page.kept) || hasOverwritten(page));
  }

  private queueMerge(offset: number, isWanted: boolean): boolean {
    if (!isWanted) return false;
    queueRanges(this.tx, this.account, { kind: 'merge', content: formatId(this.map.id), offset });
    this.hasQueued = true;
    return true;
  }
}
