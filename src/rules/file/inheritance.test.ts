import { describe, expect, it } from 'vitest';
import type { NodeKind } from './attributes.ts';
import { inheritPermission, mergePermission, ROOT_DESCRIPTOR } from './inheritance.ts';
import { formatSddl, parseSddl } from './sddl.ts';

const OWNED = 'O:BAG:BU';

function inherit(parentEntries: string, kind: NodeKind): string {
  return formatSddl(inheritPermission(parseSddl(`${OWNED}D:${parentEntries}`)!, kind))!.replace('O:SYG:SYD:AI', '');
}

function merge(named: string, parentEntries: string, kind: NodeKind): string {
  return formatSddl(mergePermission(parseSddl(named)!, parseSddl(`${OWNED}D:${parentEntries}`)!, kind))!;
}

describe('A permission that is inherited', () => {
  it.each<[string, string, string]>([
    // The entry of the directory above, then what a file and a directory have of it.
    ['(A;;FA;;;BU)', '', ''],
    ['(A;OI;FA;;;BU)', '(A;ID;FA;;;BU)', '(A;OIIOID;FA;;;BU)'],
    ['(A;CI;FA;;;BU)', '', '(A;CIID;FA;;;BU)'],
    ['(A;OICI;FA;;;BU)', '(A;ID;FA;;;BU)', '(A;OICIID;FA;;;BU)'],
    ['(A;OICIIO;FA;;;BU)', '(A;ID;FA;;;BU)', '(A;OICIID;FA;;;BU)'],
    ['(A;OINP;FA;;;BU)', '(A;ID;FA;;;BU)', ''],
    ['(A;CINP;FA;;;BU)', '', '(A;ID;FA;;;BU)'],
    ['(A;OICINP;FA;;;BU)', '(A;ID;FA;;;BU)', '(A;ID;FA;;;BU)'],
    ['(A;IO;FA;;;BU)', '', ''],
    ['(D;OICI;FA;;;BU)', '(D;ID;FA;;;BU)', '(D;OICIID;FA;;;BU)'],
    ['(A;OICIID;FA;;;BU)', '(A;ID;FA;;;BU)', '(A;OICIID;FA;;;BU)'],
    ['(A;OICIIO;GA;;;BU)', '(A;ID;FA;;;BU)', '(A;ID;FA;;;BU)(A;OICIIOID;GA;;;BU)'],
    ['(A;OICIIO;GR;;;BU)', '(A;ID;FR;;;BU)', '(A;ID;FR;;;BU)(A;OICIIOID;GR;;;BU)'],
    ['(A;OICIIO;GW;;;BU)', '(A;ID;FW;;;BU)', '(A;ID;FW;;;BU)(A;OICIIOID;GW;;;BU)'],
    ['(A;OICIIO;GX;;;BU)', '(A;ID;FX;;;BU)', '(A;ID;FX;;;BU)(A;OICIIOID;GX;;;BU)'],
    ['(A;OICIIO;FA;;;CO)', '(A;ID;FA;;;SY)', '(A;ID;FA;;;SY)(A;OICIIOID;FA;;;CO)'],
    ['(A;OICIIO;FA;;;CG)', '(A;ID;FA;;;SY)', '(A;ID;FA;;;SY)(A;OICIIOID;FA;;;CG)'],
    ['(A;OIIO;FA;;;CO)', '(A;ID;FA;;;SY)', '(A;OIIOID;FA;;;CO)'],
  ])('%s', (parent, file, directory) => {
    expect(inherit(parent, 'file')).toBe(file);
    expect(inherit(parent, 'directory')).toBe(directory);
  });

  it('is the same at every depth below the root', () => {
    const child = inheritPermission(ROOT_DESCRIPTOR, 'directory');
    const grandchild = inheritPermission(child, 'directory');
    expect(formatSddl(grandchild)).toBe(formatSddl(child));
    expect(formatSddl(inheritPermission(child, 'file'))).toBe(formatSddl(inheritPermission(ROOT_DESCRIPTOR, 'file')));
    expect(formatSddl(inheritPermission(child, 'file'))).toContain('D:AI(A;ID;FA;;;BA)');
  });

  it('has no entries below a directory that has none', () => {
    expect(inherit('', 'file')).toBe('');
    expect(inherit('NO_ACCESS_CONTROL', 'directory')).toBe('');
  });
});

describe('A permission that a create names', () => {
  it('comes before what is inherited', () => {
    expect(merge('O:AUG:AUD:(A;;FR;;;WD)', '(A;OICI;FA;;;BA)(A;OICIIO;GA;;;CO)', 'file')).toBe(
      'O:AUG:AUD:AI(A;;FR;;;WD)(A;ID;FA;;;BA)(A;ID;FA;;;AU)',
    );
  });

  it('leaves out what was inherited elsewhere', () => {
    expect(merge('O:AUG:AUD:AI(A;;FR;;;WD)(A;ID;FA;;;WD)', '', 'directory')).toBe('O:AUG:AUD:AI(A;;FR;;;WD)');
  });

  it('stands alone when it is protected, or restricts nobody', () => {
    for (const text of ['O:AUG:AUD:P(A;;FR;;;WD)(A;ID;FA;;;WD)', 'O:AUG:AUD:NO_ACCESS_CONTROL']) {
      expect(merge(text, '(A;OICI;FA;;;BA)', 'file')).toBe(text);
    }
  });
});
