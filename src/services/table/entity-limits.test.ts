import { describe, expect, it } from 'vitest';
import { StorageError } from '../common/errors.ts';
import {
  canonicalize,
  encodeEntity,
  mergeEntity,
  type Property,
  propertyName,
  type SentEntity,
} from './entity-rows.ts';
import { checkEntity, checkStored } from './request-checks.ts';

const keys = { partitionKey: 'p', rowKey: 'r' };
const text = (name: string, value: string): Property => ({
  name: propertyName(name),
  value: canonicalize({ type: 'Edm.String', value }),
});
const binary = (name: string, length: number): Property => ({
  name: propertyName(name),
  value: canonicalize({ type: 'Edm.Binary', value: Buffer.alloc(length) }),
});
const many = (count: number, from = 0): Property[] => Array.from({ length: count }, (_, i) => text(`p${from + i}`, ''));

function codeOf(action: () => unknown): string {
  try {
    action();
    return 'fine';
  } catch (error) {
    if (error instanceof StorageError) return error.code;
    throw error;
  }
}
const check = (entity: Partial<SentEntity>) => codeOf(() => checkEntity({ ...keys, properties: [], ...entity }));
const named = (name: string) => check({ properties: [text(name, '')] });

describe('An entity', () => {
  it('has both keys, which may be empty', () => {
    expect(check({ partitionKey: undefined })).toBe('PropertiesNeedValue');
    expect(check({ rowKey: undefined })).toBe('PropertiesNeedValue');
    expect(check({ partitionKey: '', rowKey: '' })).toBe('fine');
  });

  it('has keys of at most 512 UTF-16 units', () => {
    expect(check({ partitionKey: 'é'.repeat(512), rowKey: '😀'.repeat(256) })).toBe('fine');
    expect(check({ partitionKey: 'a'.repeat(513) })).toBe('PropertyValueTooLarge');
    expect(check({ rowKey: '😀'.repeat(257) })).toBe('PropertyValueTooLarge');
  });

  it.each(['/', '\\', '#', '?', '\0', '\t', '\n', '\x1f', '\x7f', '\x9f'])('has no %j in a key', (character) => {
    expect(check({ partitionKey: `a${character}b` })).toBe('OutOfRangeInput');
    expect(check({ rowKey: character })).toBe('OutOfRangeInput');
  });

  it('may have any other character in a key', () =>
    expect(check({ partitionKey: ' !"$%&\'()*+,-.:;<=>@[]^_`{|}~\xa0é', rowKey: '中😀' })).toBe('fine'));

  it('has no unpaired surrogate in a key', () =>
    expect(check({ partitionKey: 'p', rowKey: 'a\ud800' })).toBe('OutOfRangeInput'));

  it('has at most 252 properties', () => {
    expect(check({ properties: many(252) })).toBe('fine');
    expect(check({ properties: many(253) })).toBe('TooManyProperties');
  });

  it.each(['a', '_', 'A1', '啊齄丂狛狜', 'é_1', 'a‌b'])('may have a property %s', (name) =>
    expect(named(name)).toBe('fine'),
  );
  it.each(['', '1a', 'a-b', 'a.b', 'a b', 'a:b', '😀', '\ud800', 'a\n'])('has no property %j', (name) =>
    expect(named(name)).toBe('PropertyNameInvalid'),
  );

  it('has names of at most 255 characters', () => {
    expect(named('n'.repeat(255))).toBe('fine');
    expect(named('n'.repeat(256))).toBe('PropertyNameTooLong');
  });

  it('has strings of at most 32 Ki units and bytes of at most 64 Ki', () => {
    expect(check({ properties: [text('a', 'é'.repeat(32768)), binary('b', 65536)] })).toBe('fine');
    expect(check({ properties: [text('a', 'a'.repeat(32769))] })).toBe('PropertyValueTooLarge');
    expect(check({ properties: [binary('a', 65537)] })).toBe('PropertyValueTooLarge');
  });

  it('takes at most 1 MiB, as Azure counts it', () => {
    // 4 + 2 * 2 for the keys; 15 * (8 + 2 * 2 + 65536 + 4); the rest in one more.
    const most = Array.from({ length: 15 }, (_, i) => binary(`b${String.fromCharCode(97 + i)}`, 65536));
    const rest = 1048576 - 8 - 15 * 65552 - 16;
    expect(codeOf(() => checkStored(encodeEntity(keys, [...most, binary('zz', rest)])))).toBe('fine');
    expect(codeOf(() => checkStored(encodeEntity(keys, [...most, binary('zz', rest + 1)])))).toBe('EntityTooLarge');
  });

  it('is checked as a merge leaves it', () => {
    const stored = (properties: Property[]) => ({ ...keys, version: 1n, value: encodeEntity(keys, properties) });
    expect(codeOf(() => checkStored(mergeEntity(stored(many(252)), many(10, 0))))).toBe('fine');
    expect(codeOf(() => checkStored(mergeEntity(stored(many(252)), many(1, 252))))).toBe('TooManyProperties');
    const large = (from: number) => Array.from({ length: 10 }, (_, i) => binary(`b${from + i}`, 65536));
    expect(codeOf(() => checkStored(mergeEntity(stored(large(0)), large(0))))).toBe('fine');
    expect(codeOf(() => checkStored(mergeEntity(stored(large(0)), large(10))))).toBe('EntityTooLarge');
  });
});
