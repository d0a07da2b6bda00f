/** The entries of a directory in the order of folded names, now or as a snapshot sees them: a merge of current and kept entries. */
import { nextSlice } from '../../base/time-slices.ts';
import { encodeKey, type Key, keyAfter, prefixEnd, type Range } from '../../partition/keys.ts';
import type { Row, Snapshot } from '../../partition/partition.ts';
import { diedIn } from './history.ts';
import { decodeEntry } from './node-rows.ts';
import { historyIn, type ShareKeys } from './rows.ts';

/** Rows of each kind that are read at a time. */
const WINDOW_ROWS = 250;
/** The part `died` of a key, with its type. */
const DIED_BYTES = 9;

/**
 * The first entries of a range of entry keys.
 * @param gen of a snapshot; undefined: the current state
 */
export async function scanEntries(
  at: Snapshot,
  share: ShareKeys,
  { from, to }: Range,
  limit: number,
  gen: number | undefined,
): Promise<Row[]> {
  if (gen === undefined) return at.scan({ from, to }, { limit });
  const found: Row[] = [];
  for (let next: Key | undefined = from; next !== undefined && found.length < limit; ) {
    const window: Window = await readWindow(at, share, { from: next, to }, gen);
    found.push(...window.rows);
    next = window.next;
    if (next !== undefined) await nextSlice();
  }
  return found.slice(0, limit);
}

interface Window {
  readonly rows: readonly Row[];
  /** Where the next window begins; undefined: nothing follows. */
  readonly next: Key | undefined;
}

async function readWindow(at: Snapshot, share: ShareKeys, { from, to }: Range, gen: number): Promise<Window> {
  const entryPrefix = encodeKey([share.account, 'd', share.id]);
  const keptPrefix = historyIn(share, 'd').from;
  const toKept = (key: Key) => (keptPrefix + key.slice(entryPrefix.length)) as Key;
  const nameOf = ({ key }: Row) => (entryPrefix + key.slice(keptPrefix.length, -DIED_BYTES)) as Key;
  const [current, first] = await Promise.all([
    at.scan({ from, to }, { limit: WINDOW_ROWS }),
    at.scan({ from: toKept(from), to: toKept(to) }, { limit: WINDOW_ROWS }),
  ]);
  const next = windowEnd(current, first.map(nameOf));
  // All are of one name, and there may be more of it.
  const isCut = first.length === WINDOW_ROWS && nameOf(first[0]!) === nameOf(first.at(-1)!);
  const kept = isCut ? await seekKept(at, toKept(nameOf(first[0]!)), gen) : first;
  const isInWindow = (key: Key) => next === undefined || key < next;
  const seen = new Map<Key, Row | undefined>();
  for (const row of kept) {
    const key = nameOf(row);
    // In the order of `died`: the first that died later decides.
    if (!isInWindow(key) || seen.has(key) || diedIn(row.key) <= gen) continue;
    seen.set(key, decodeEntry(row).born <= gen ? { ...row, key } : undefined);
  }
  for (const row of current) if (isInWindow(row.key) && decodeEntry(row).born <= gen) seen.set(row.key, row);
  const rows = [...seen.values()].filter((row) => row !== undefined);
  rows.sort((one, other) => (one.key < other.key ? -1 : 1));
  return { rows, next };
}

/** Of the kept rows of one name the first that died after this generation. */
function seekKept(at: Snapshot, name: Key, gen: number): Promise<Row[]> {
  return at.scan({ from: (name + encodeKey([gen + 1])) as Key, to: prefixEnd(name) }, { limit: 1 });
}

/** Before the first name of which a row may be missing. */
function windowEnd(current: readonly Row[], keptNames: readonly Key[]): Key | undefined {
  const ends: Key[] = [];
  if (current.length === WINDOW_ROWS) ends.push(keyAfter(current.at(-1)!.key));
  const last = keptNames.at(-1);
  if (keptNames.length === WINDOW_ROWS && last !== undefined) ends.push(keptNames[0] === last ? keyAfter(last) : last);
  return ends.sort()[0];
}
