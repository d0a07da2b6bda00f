/** Blob index tags: which sets of tags are valid, and the form that the header x-ms-tags has. */

/** Sorted by key, as Azure lists them; a key occurs once. Pairs, because an object has no place for every key. */
export type Tags = readonly Tag[];
export type Tag = readonly [key: string, value: string];

export const NO_TAGS: Tags = Object.freeze([]);

export type TagsFault = 'TagsTooLarge' | 'EmptyTagName' | 'InvalidTags' | 'DuplicateTagNames';

const TAGS_MAX = 10;
export const KEY_MAX = 128;
export const VALUE_MAX = 256;
const VALID = /^[A-Za-z0-9 +\-./:=_]*$/;

export function tagsFault(tags: Tags): TagsFault | undefined {
  if (tags.length > TAGS_MAX) return 'TagsTooLarge';
  const keys = new Set<string>();
  for (const [key, value] of tags) {
    if (key === '') return 'EmptyTagName';
    if (key.length > KEY_MAX || value.length > VALUE_MAX) return 'TagsTooLarge';
    if (!VALID.test(key) || !VALID.test(value)) return 'InvalidTags';
    keys.add(key);
  }
  return keys.size < tags.length ? 'DuplicateTagNames' : undefined;
}

export function sortTags(tags: Tags): Tags {
  return tags.length === 0 ? NO_TAGS : [...tags].sort(([one], [other]) => (one < other ? -1 : 1));
}

/** Encoded as a query string: `key=value&key=value`. Undefined: the text has another form. */
export function parseTagsHeader(text: string): Tags | undefined {
  if (text === '') return NO_TAGS;
  const tags: Tag[] = [];
  // One more than is valid shows that there are too many.
  for (const pair of text.split('&', TAGS_MAX + 1)) {
    const end = pair.indexOf('=');
    const key = decode(pair.slice(0, Math.max(end, 0)));
    const value = decode(pair.slice(end + 1));
    if (end < 0 || key === undefined || value === undefined) return undefined;
    tags.push([key, value]);
  }
  return tags;
}

export function findTag(tags: Tags, key: string): string | undefined {
  return tags.find(([name]) => name === key)?.[1];
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
