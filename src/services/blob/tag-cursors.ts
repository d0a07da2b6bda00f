/** Cursors over the index of tags of one container: what a query reads of it, in order. */
import { nextSlice } from '../../base/time-slices.ts';
import { decodeKey, decodeKeySuffix, type Key, keyAfter, type Range } from '../../partition/keys.ts';
import type { PagedSnapshot, Row } from '../../partition/partition.ts';
import type { TagComparison } from '../../rules/tag-filter.ts';
import { sortTags, type Tags } from '../../rules/tags.ts';
import type { AccountId } from '../common/storage.ts';
import type { ContainerId } from './rows.ts';
import { taggedBlobsIn, taggedBlobsPrefix, tagKey } from './tag-index.ts';

/** A blob as an index row names it. Its place among the others is by value, then by name. */
export interface Candidate {
  readonly value: string;
  readonly name: string;
}

export interface TagCursor {
  /** The next candidate; undefined: no more. */
  next(): Promise<Candidate | undefined>;
  /** The keys whose tags `tagsOf` knows. */
  readonly keys: ReadonlySet<string>;
  /** The tags of a candidate that stand in the index rows that led to it. */
  tagsOf(candidate: Candidate): Tags;
}

/** A cursor that jumps reads few rows at first, and more while it goes on from row to row. */
const ROWS_MIN = 4;
const ROWS_MAX = 256;
const SEEKS_PER_SLICE = 64;

/**
 * Comparisons by = narrow the search to names that all of their lists have (a merge join that seeks in each list), so that the cost is
 * that of the shortest list. Without any, the values of the first key in their range are read.
 */
export function openCursor(
  at: PagedSnapshot,
  account: AccountId,
  id: ContainerId,
  comparisons: readonly TagComparison[],
  after: Candidate | undefined,
): TagCursor {
  const equal = comparisons.filter(({ operator }) => operator === '=');
  if (equal.length === 0) {
    const { key } = comparisons[0]!;
    const range = valueRange(account, id, comparisons);
    const rows = new IndexRows(at, range);
    if (after) rows.seek(keyAfter(tagKey(account, id, key, after.value, after.name)));
    return {
      next: async () => candidateFrom(await rows.next()),
      keys: new Set([key]),
      tagsOf: ({ value }) => [[key, value]],
    };
  }
  const lists = equal.map(({ key, value }) => ({
    rows: new IndexRows(at, taggedBlobsIn(account, id, key, value)),
    keyOf: (name: string) => tagKey(account, id, key, value, name),
    nameIn: (row: Row) => decodeKeySuffix(row.key, taggedBlobsPrefix(account, id, key, value)),
  }));
  if (after) lists[0]!.rows.seek(keyAfter(lists[0]!.keyOf(after.name)));
  const tags = new Map(equal.map(({ key, value }) => [key, value]));
  const known = sortTags([...tags]);
  const { value } = equal[0]!;
  return {
    async next() {
      const name = await nextInAll(lists);
      return name === undefined ? undefined : { value, name };
    },
    keys: new Set(tags.keys()),
    tagsOf: () => known,
  };
}

interface NameList {
  readonly rows: IndexRows;
  keyOf(name: string): Key;
  nameIn(row: Row): string;
}

async function nextInAll([first, ...others]: readonly NameList[]): Promise<string | undefined> {
  const { rows: firstRows, keyOf: firstKeyOf, nameIn: firstNameIn } = first!;
  let row = await firstRows.next();
  let seeks = 0;
  for (let agreed = 0; row !== undefined && agreed < others.length; ) {
    const { rows, keyOf, nameIn } = others[agreed]!;
    if (++seeks % SEEKS_PER_SLICE === 0) await nextSlice();
    const name = firstNameIn(row);
    rows.seek(keyOf(name));
    const other = await rows.peek();
    if (!other) return undefined;
    const otherName = nameIn(other);
    if (otherName === name) {
      agreed++;
      continue;
    }
    agreed = 0;
    firstRows.seek(firstKeyOf(otherName));
    row = await firstRows.next();
  }
  return row && firstNameIn(row);
}

/** The rows of the first key whose values meet every comparison of that key. */
function valueRange(account: AccountId, id: ContainerId, comparisons: readonly TagComparison[]): Range {
  const { key: first } = comparisons[0]!;
  let { from, to } = taggedBlobsIn(account, id, first);
  for (const { key, operator, value } of comparisons) {
    if (key !== first) continue;
    const same = taggedBlobsIn(account, id, key, value);
    if (operator === '>=' && same.from > from) from = same.from;
    if (operator === '>' && same.to > from) from = same.to;
    if (operator === '<' && same.from < to) to = same.from;
    if (operator === '<=' && same.to < to) to = same.to;
  }
  return { from, to };
}

function candidateFrom(row: Row | undefined): Candidate | undefined {
  if (!row) return undefined;
  const [, , , , value, name] = decodeKey(row.key) as [bigint, string, bigint, string, string, string];
  return { value, name };
}

class IndexRows {
  readonly #at: PagedSnapshot;
  readonly #to: Key;
  /** Where the rows after those in memory begin; undefined: there are none. */
  #from: Key | undefined;
  #rows: readonly Row[] = [];
  #position = 0;
  #limit = ROWS_MIN;

  constructor(at: PagedSnapshot, { from, to }: Range) {
    this.#at = at;
    this.#from = from;
    this.#to = to;
  }

  /** Never goes back. */
  seek(key: Key): void {
    while (this.#position < this.#rows.length && this.#rows[this.#position]!.key < key) this.#position++;
    if (this.#position < this.#rows.length || this.#from === undefined || this.#from >= key) return;
    this.#from = key;
    this.#limit = ROWS_MIN;
  }

  async next(): Promise<Row | undefined> {
    const row = await this.peek();
    this.#position++;
    return row;
  }

  async peek(): Promise<Row | undefined> {
    while (this.#position >= this.#rows.length) {
      if (this.#from === undefined || this.#from >= this.#to) return undefined;
      const page = await this.#at.page({ from: this.#from, to: this.#to }, { limit: this.#limit });
      this.#limit = Math.min(this.#limit * 4, ROWS_MAX);
      this.#rows = page.rows;
      this.#position = 0;
      this.#from = page.next;
    }
    return this.#rows[this.#position];
  }
}
