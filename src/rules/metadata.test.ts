import { describe, expect, it } from 'vitest';
import { metadataFault } from './names.ts';

describe('Metadata', () => {
  it.each(['a', '_', 'A1', 'camelCase', 'with_underscore', '__1'])('may have the name %s', (name) =>
    expect(metadataFault([[name, 'value']])).toBeUndefined(),
  );

  it.each(['1a', 'a-b', 'a.b', 'a b', '-', 'a!', 'ä', 'a\n'])('must not have the name %j', (name) =>
    expect(metadataFault([[name, 'value']])).toBe('InvalidMetadata'),
  );

  it('must not have an empty name', () => expect(metadataFault([['', 'value']])).toBe('EmptyMetadataKey'));

  it('may be none, and may have empty values', () => {
    expect(metadataFault([])).toBeUndefined();
    expect(metadataFault([['name', '']])).toBeUndefined();
  });

  it('must not have one name twice, whatever its case', () => {
    const twice: [string, string][] = [
      ['name', '1'],
      ['Name', '2'],
    ];
    expect(metadataFault(twice)).toBe('InvalidMetadata');
  });

  it('may have 8 KiB of names and values in all, not more', () => {
    const pairs = (length: number): [string, string][] => [
      ['first', 'x'.repeat(4000)],
      ['other', 'x'.repeat(length - 4000 - 10)],
    ];
    expect(metadataFault(pairs(8192))).toBeUndefined();
    expect(metadataFault(pairs(8193))).toBe('MetadataTooLarge');
  });
});
