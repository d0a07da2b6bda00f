import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attributesOfNew, formatAttributes, isReadOnly, parseAttributes } from './attributes.ts';

const NAMES = ['ReadOnly', 'Hidden', 'System', 'Archive', 'Temporary', 'Offline', 'NotContentIndexed', 'NoScrubData'];
const someNames = fc.subarray(NAMES, { minLength: 1 });

describe('x-ms-file-attributes', () => {
  it('is answered in the order of the bits, with spaces around the bars', () => {
    expect(formatAttributes(parseAttributes('archive|READONLY', 'file')!)).toBe('ReadOnly | Archive');
    expect(formatAttributes(parseAttributes('ReadOnly|Directory', 'directory')!)).toBe('ReadOnly | Directory');
    expect(formatAttributes(attributesOfNew(parseAttributes('Temporary|NoScrubData', 'file')!, 'file'))).toBe(
      'Archive | Temporary | NoScrubData',
    );
  });

  it('is understood in any order, case and spacing, and as it was answered', () => {
    fc.assert(
      fc.property(someNames, fc.shuffledSubarray(NAMES), fc.boolean(), (names, order, upper) => {
        const sorted = order.filter((name) => names.includes(name));
        const all = [...sorted, ...names.filter((name) => !sorted.includes(name))];
        const text = all.map((name) => (upper ? name.toUpperCase() : name)).join(upper ? '|' : ' | ');
        const attributes = parseAttributes(text, 'file')!;
        expect(formatAttributes(attributes)).toBe(NAMES.filter((name) => names.includes(name)).join(' | '));
        expect(parseAttributes(formatAttributes(attributes), 'file')).toBe(attributes);
      }),
    );
  });

  it('None is no attribute of a file, and Directory of a directory', () => {
    expect(parseAttributes('none', 'file')).toBe(0);
    expect(formatAttributes(0)).toBe('None');
    expect(formatAttributes(parseAttributes('None', 'directory')!)).toBe('Directory');
    expect(formatAttributes(parseAttributes('Hidden', 'directory')!)).toBe('Hidden | Directory');
  });

  it.each(['', '|', 'ReadOnly|', 'ReadOnly,Hidden', 'None|ReadOnly', 'Compressed', '32', 'Directory'])(
    'refuses %j of a file',
    (text) => {
      expect(parseAttributes(text, 'file')).toBeUndefined();
    },
  );

  it('a new file is marked for the next backup, a new directory is not', () => {
    expect(formatAttributes(attributesOfNew(0, 'file'))).toBe('Archive');
    expect(formatAttributes(attributesOfNew(0, 'directory'))).toBe('Directory');
  });

  it('knows what is read-only', () => {
    expect(isReadOnly(parseAttributes('Hidden|ReadOnly', 'file')!)).toBe(true);
    expect(isReadOnly(parseAttributes('Hidden', 'file')!)).toBe(false);
  });
});
