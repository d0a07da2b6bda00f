import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { childOf, escapeXml, parseXml, XmlError, xmlSafe } from './xml.ts';

const parse = (text: string) => parseXml(Buffer.from(text));

function refusal(bytes: Uint8Array): XmlError {
  try {
    parseXml(bytes);
  } catch (error) {
    if (error instanceof XmlError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

describe('reading XML', () => {
  it('gives a small tree', () => {
    const root = parse(
      '\ufeff<?xml version="1.0" encoding="utf-8"?>\n<A><B>x &amp; <![CDATA[<y>]]></B><C/><B>2</B></A>',
    );
    expect(root).toMatchObject({ name: 'A', text: '', line: 2 });
    expect(root.children.map(({ name, text }) => [name, text])).toEqual([
      ['B', 'x & <y>'],
      ['C', ''],
      ['B', '2'],
    ]);
    expect(childOf(root, 'B')?.text).toBe('x & <y>');
    expect(childOf(root, 'D')).toBeUndefined();
  });

  it('knows where the name of an element stands in its tags', () => {
    const [b, c] = parse('<Aaa>\n  <Bb>x</Bb><Cc/></Aaa>').children;
    expect(b).toMatchObject({ line: 2, column: 4, endLine: 2, endColumn: 10 });
    expect(c).toMatchObject({ line: 2, column: 14, endLine: 2, endColumn: 14 });
  });

  it('reads UTF-16 with a byte order mark', () => {
    expect(parseXml(Buffer.from('\ufeff<A>é</A>', 'utf16le')).text).toBe('é');
  });

  it('says where a document is broken', () => {
    const error = refusal(Buffer.from('<A>\n<B></A>'));
    expect(error.line).toBe(2);
    expect(error.column).toBeGreaterThan(1);
    expect(error.message).not.toMatch(/^\d/);
  });

  it('takes no document type, so that no entity can be declared', () => {
    const bomb = '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]><a>&c;</a>';
    expect(refusal(Buffer.from(bomb)).message).toContain('document type');
    expect(refusal(Buffer.from('<a>&b;</a>'))).toBeInstanceOf(XmlError);
    expect(refusal(Buffer.from('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>'))).toBeInstanceOf(XmlError);
  });

  it('bounds the depth', () => {
    expect(parse('<a>'.repeat(16) + '</a>'.repeat(16)).name).toBe('a');
    expect(refusal(Buffer.from('<a>'.repeat(17) + '</a>'.repeat(17))).message).toContain('16');
  });

  it('refuses what is empty, not UTF-8, or has two roots', () => {
    expect(refusal(Buffer.from(''))).toBeInstanceOf(XmlError);
    expect(refusal(Buffer.from([0x3c, 0x61, 0x3e, 0xc3, 0x28]))).toBeInstanceOf(XmlError);
    expect(refusal(Buffer.from('<a/><b/>'))).toBeInstanceOf(XmlError);
  });

  it('ends on any bytes with a tree or an XmlError', () => {
    const piece = fc.constantFrom(
      '<a>',
      '</a>',
      '<b/>',
      '&amp;',
      '&#0;',
      '<![CDATA[',
      ']]>',
      '<!--',
      '-->',
      '<?x',
      '?>',
      'é',
    );
    const soup = fc
      .array(fc.oneof(piece, fc.string({ unit: 'binary' })), { maxLength: 12 })
      .map((parts) => Buffer.from(parts.join('')));
    fc.assert(
      fc.property(fc.oneof(soup, fc.uint8Array()), (bytes) => {
        try {
          parseXml(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(XmlError);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('writing XML', () => {
  it('escapes what has a meaning of its own', () => {
    expect(escapeXml(`a<b>&"c"'d'\r`)).toBe('a&lt;b&gt;&amp;&quot;c&quot;&apos;d&apos;&#xD;');
    expect(escapeXml('plain/name.txt')).toBe('plain/name.txt');
  });

  it('knows what XML cannot carry', () => {
    for (const text of [
      '\u0000',
      'a\u0008',
      '\u000b',
      '\u001f',
      '\ufffe',
      '\uffff',
      '\ud800',
      'a\udc00',
      '\udc00\ud800',
    ]) {
      expect(xmlSafe(text), JSON.stringify(text)).toBe(false);
    }
    for (const text of ['', 'a b', '\t\n\r', 'é', '\u{1f600}', '\ufffd', '\u007f', '\ue000']) {
      expect(xmlSafe(text), JSON.stringify(text)).toBe(true);
    }
  });

  it('brings every text that XML can carry back as it was', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        fc.pre(xmlSafe(text));
        expect(parse(`<a>${escapeXml(text)}</a>`).text).toBe(text);
      }),
    );
  });

  it('gives a document that parses even of text that XML cannot carry', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => parse(`<a>${escapeXml(text)}</a>`).name === 'a'));
  });
});
