import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { foldName, formatPath, type Path, type PathFault, parsePath } from './names.ts';

const names = (parsed: Path | PathFault) => (typeof parsed === 'string' ? parsed : formatPath(parsed));

describe('folding of names', () => {
  it('joins the two cases of a letter of the BMP', () => {
    for (const [a, b] of ['aA', 'éÉ', 'ÿŸ', 'жЖ', 'ωΩ', 'ǆǄ', 'ａＡ', 'ⅷⅧ']) expect(foldName(a!), a).toBe(foldName(b!));
  });

  it('joins final sigma with sigma', () => {
    expect(foldName('Οδός')).toBe(foldName('ΟΔΌΣ'));
  });

  it('keeps letters apart whose uppercase belongs to another letter', () => {
    for (const [a, b] of ['ıI', 'ſS', 'µΜ', 'ßẞ']) expect(foldName(a!), a).not.toBe(foldName(b!));
    expect(foldName('ß')).toBe('ß');
  });

  it('leaves characters beyond the BMP as they are', () => {
    expect(foldName('\u{10428}')).toBe('\u{10428}');
    expect(foldName('\u{10428}')).not.toBe(foldName('\u{10400}'));
  });

  it('keeps composed and decomposed characters apart', () => {
    expect(foldName('\u00e9')).not.toBe(foldName('e\u0301'));
  });

  it('is idempotent, and never changes the length', () => {
    for (let unit = 0; unit <= 0xffff; unit++) {
      const folded = foldName(String.fromCharCode(unit));
      expect(folded.length).toBe(1);
      expect(foldName(folded)).toBe(folded);
    }
  });

  it('is the table that the first version had: keys on disk depend on it', () => {
    const hash = createHash('sha256');
    for (let unit = 0; unit <= 0xffff; unit++) hash.update(Buffer.from(foldName(String.fromCharCode(unit)), 'utf16le'));
    expect(hash.digest('hex')).toBe('3051988e08ccc9401902b61b219c3693bc974c38ba6d3286c1d3cf315e845f38');
  });
});

describe('paths', () => {
  it('are names between slashes, as given', () => {
    expect(parsePath('Docs/Ärger.TXT')).toEqual([
      { name: 'Docs', folded: 'DOCS' },
      { name: 'Ärger.TXT', folded: 'ÄRGER.TXT' },
    ]);
    expect(parsePath('')).toEqual([]);
    expect(names(parsePath('a/b/'))).toBe('a/b');
  });

  it('lose the dots at the end of each name, unless these are to be kept', () => {
    expect(names(parsePath('a./b...'))).toBe('a/b');
    expect(names(parsePath('a./b...', { keepsTrailingDots: true }))).toBe('a./b...');
    expect(names(parsePath('.a.b'))).toBe('.a.b');
  });

  it.each([
    'a"b',
    'a\\b',
    'a:b',
    'a|b',
    'a<b',
    'a>b',
    'a*',
    'a?',
    'a\u0001',
    'a\u001f',
    '\ue000',
    '\ud800',
    'a//b',
    '//',
  ])('are refused for the characters of %j', (path) => {
    expect(parsePath(path)).toBe('InvalidResourceName');
  });

  it('have characters of the private use area only where these are allowed', () => {
    expect(names(parsePath('a\uf03ab/\ue000', { allowsPrivateUse: true }))).toBe('a\uf03ab/\ue000');
    expect(parsePath('a\uf03ab')).toBe('InvalidResourceName');
    expect(parsePath('a:b', { allowsPrivateUse: true })).toBe('InvalidResourceName');
  });

  it.each(['.', '..', 'a/..', '...', 'con', 'COM9', 'lpt1', 'Nul', 'aux', 'PRN', 'clock$', 'x/con/y'])(
    'are refused for the reserved name in %j',
    (path) => {
      expect(parsePath(path)).toBe('InvalidResourceName');
    },
  );

  it.each(['com0', 'COM10', 'con.txt', 'nul1', 'a.b', '$a', 'a b', '\ufffe', '\u{1f600}', '.git'])(
    'are accepted with the name %j',
    (path) => {
      expect(names(parsePath(path))).toBe(path);
    },
  );

  it('keep three dots where dots are kept, but never one or two', () => {
    expect(names(parsePath('...', { keepsTrailingDots: true }))).toBe('...');
    expect(parsePath('..', { keepsTrailingDots: true })).toBe('InvalidResourceName');
    expect(parsePath('con.', { keepsTrailingDots: false })).toBe('InvalidResourceName');
  });

  it('have names of at most 255 units, 2,048 in all, and 250 levels', () => {
    expect(names(parsePath('n'.repeat(255)))).toHaveLength(255);
    expect(parsePath('n'.repeat(256))).toBe('PathTooLong');
    const long = `${'n'.repeat(255)}/`.repeat(8).slice(0, 2048);
    expect(names(parsePath(long))).toHaveLength(2047);
    expect(parsePath(`${long}ab`)).toBe('PathTooLong');
    expect(parsePath(Array(250).fill('d').join('/'))).toHaveLength(250);
    expect(parsePath(Array(251).fill('d').join('/'))).toBe('TooManySubdirectories');
  });
});
