/** The conditions on tags that Find Blobs by Tags has in `where`, and other operations in x-ms-if-tags: parsed and evaluated. */
import { TAG_COMPARISONS_MAX } from '../base/input-limits.ts';
import { findTag, KEY_MAX, type Tags, VALUE_MAX } from './tags.ts';

export type TagOperator = '=' | '<>' | '<' | '<=' | '>' | '>=';

export interface TagComparison {
  readonly key: string;
  readonly operator: TagOperator;
  readonly value: string;
}

/** One of the groups must be true as a whole. */
export type TagCondition = readonly (readonly TagComparison[])[];

export interface TagQuery {
  /** All must be true, and there is at least one. */
  readonly comparisons: readonly TagComparison[];
  /** Every container that the query names; undefined: it names none. */
  readonly containers: readonly string[] | undefined;
}

/** The message is sent to the client. */
export class TagFilterError extends Error {
  override readonly name = 'TagFilterError';
}

const CONTAINER = '@container';

/** `where`: comparisons that are all true, perhaps in one container. */
export function parseTagQuery(text: string): TagQuery {
  const [all = [], ...others] = parse(text, true);
  if (
    others.length > 0 ||
    all.some(({ key, operator }) => operator === '<>' || (key === CONTAINER && operator !== '='))
  )
    throw new TagFilterError('A query compares tags by =, <, <=, > and >=, joined by AND, and @container by =.');
  const comparisons = all.filter(({ key }) => key !== CONTAINER);
  if (comparisons.length === 0) throw new TagFilterError('A query compares at least one tag.');
  const containers = all.filter(({ key }) => key === CONTAINER).map(({ value }) => value);
  return { comparisons, containers: containers.length > 0 ? containers : undefined };
}

/** x-ms-if-tags. */
export function parseTagCondition(text: string): TagCondition {
  return parse(text, false);
}

/** A blob that does not exist has no tags, and meets no condition. */
export function meetsTagCondition(tags: Tags | undefined, condition: TagCondition): boolean {
  return tags !== undefined && condition.some((group) => meetsAll(tags, group));
}

export function meetsAll(tags: Tags, comparisons: readonly TagComparison[]): boolean {
  return comparisons.every(({ key, operator, value }) => {
    const found = findTag(tags, key);
    return found === undefined ? operator === '<>' : COMPARE[operator](found, value);
  });
}

/** In the order of UTF-16 units, which is that of the keys of rows. */
const COMPARE: Readonly<Record<TagOperator, (found: string, value: string) => boolean>> = {
  '=': (found, value) => found === value,
  '<>': (found, value) => found !== value,
  '<': (found, value) => found < value,
  '<=': (found, value) => found <= value,
  '>': (found, value) => found > value,
  '>=': (found, value) => found >= value,
};

const SPACE = /[ \t]*/y;
/** A key in double quotes, or a plain word; @container has no quotes. */
const KEY = /"([^"]*)"|([A-Za-z_]\w*|@container\b)/iy;
const OPERATOR = /<>|<=|>=|[<>=]/y;
const VALUE = /'([^']*)'/y;
const JOIN = /(and|or)\b/iy;

function parse(text: string, takesContainer: boolean): TagComparison[][] {
  let at = 0;
  let count = 0;
  const next = (pattern: RegExp): RegExpExecArray | undefined => {
    SPACE.lastIndex = at;
    at += SPACE.exec(text)![0].length;
    pattern.lastIndex = at;
    const found = pattern.exec(text) ?? undefined;
    if (found) at = pattern.lastIndex;
    return found;
  };
  const expect = (pattern: RegExp): RegExpExecArray => next(pattern) ?? unexpected(text, at);
  const groups: TagComparison[][] = [[]];
  for (;;) {
    if (++count > TAG_COMPARISONS_MAX)
      throw new TagFilterError(`A condition has at most ${TAG_COMPARISONS_MAX} comparisons.`);
    const [whole, quoted, word] = expect(KEY);
    const isContainer = word?.toLowerCase() === CONTAINER;
    if (isContainer && !takesContainer) unexpected(text, at - whole.length);
    const key = isContainer ? CONTAINER : (quoted ?? word!);
    const operator = expect(OPERATOR)[0] as TagOperator;
    const value = expect(VALUE)[1]!;
    // An engine could not look longer keys up.
    if (key.length > KEY_MAX || value.length > VALUE_MAX)
      throw new TagFilterError(`A key has at most ${KEY_MAX} characters, and a value ${VALUE_MAX}.`);
    groups.at(-1)!.push({ key, operator, value });
    const join = next(JOIN)?.[0].toLowerCase();
    if (join === 'or') groups.push([]);
    if (join !== undefined) continue;
    if (at < text.length) unexpected(text, at);
    return groups;
  }
}

const SHOWN_MAX = 32;

function unexpected(text: string, at: number): never {
  const shown = text.slice(at, at + SHOWN_MAX);
  throw new TagFilterError(`Error parsing query at or near character position ${at + 1}: unexpected '${shown}'`);
}
