import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseTagsHeader, sortTags, type Tag, tagsFault } from './tags.ts';

const CHARACTERS = 'abcXYZ0189 +-./:=_';
const text = (min: number, max: number) =>
  fc.string({ unit: fc.constantFrom(...CHARACTERS), minLength: min, maxLength: max });
const validTags = fc.uniqueArray(fc.tuple(text(1, 128), text(0, 256)), { maxLength: 10, selector: ([key]) => key });

describe('A set of tags', () => {
  it('is valid within all limits', () => {
    fc.assert(fc.property(validTags, (tags) => tagsFault(tags) === undefined));
  });

  it.each<[string, Tag[], ReturnType<typeof tagsFault>]>([
    ['eleven tags', Array.from({ length: 11 }, (_, at) => [`key${at}`, '']), 'TagsTooLarge'],
    ['a key of 129 characters', [['k'.repeat(129), '']], 'TagsTooLarge'],
    ['a value of 257 characters', [['key', 'v'.repeat(257)]], 'TagsTooLarge'],
    ['an empty key', [['', 'value']], 'EmptyTagName'],
    [
      'a key that occurs twice',
      [
        ['key', '1'],
        ['key', '2'],
      ],
      'DuplicateTagNames',
    ],
  ])('is invalid with %s', (_, tags, fault) => expect(tagsFault(tags)).toBe(fault));

  it('has only the characters that Azure documents, in keys and in values', () => {
    for (let code = 0; code < 0x250; code++) {
      const character = String.fromCharCode(code);
      const fault = /[A-Za-z0-9 +\-./:=_]/.test(character) ? undefined : 'InvalidTags';
      expect(tagsFault([[character, '']])).toBe(fault);
      expect(tagsFault([['key', character]])).toBe(fault);
    }
  });

  it('tells keys apart by their case', () => {
    expect(
      tagsFault([
        ['key', ''],
        ['Key', ''],
      ]),
    ).toBeUndefined();
  });

  it('is sorted by key', () => {
    fc.assert(
      fc.property(validTags, (tags) => {
        const keys = sortTags(tags).map(([key]) => key);
        expect(keys).toEqual(tags.map(([key]) => key).sort());
      }),
    );
  });
});

describe('The header x-ms-tags', () => {
  it('gives back what a client encodes', () => {
    fc.assert(
      fc.property(validTags, (tags) => {
        const header = tags.map((tag) => tag.map(encodeURIComponent).join('=')).join('&');
        expect(parseTagsHeader(header)).toEqual(tags);
      }),
    );
  });

  it('may have plus signs for spaces, and equals signs in values', () => {
    expect(parseTagsHeader('a+b=c=d')).toEqual([['a b', 'c=d']]);
  });

  it.each(['a', 'a=b&', '&', '%=b', 'a=%ff'])('is refused in another form: %j', (header) => {
    expect(parseTagsHeader(header)).toBeUndefined();
  });

  it('shows that there are too many without decoding them all', () => {
    expect(tagsFault(parseTagsHeader('a=b&'.repeat(1_000))!)).toBe('TagsTooLarge');
  });
});
