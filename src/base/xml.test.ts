import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { atOnce } from '../../test/support/run-steps.ts';
import { BLOCK_LIST_TEXT_MAX, XML_ASIDES_MAX, XML_ATTRIBUTES_MAX, XML_TEXT_MAX } from './input-limits.ts';
import {
  createXmlReader,
  escapeXml,
  findChild,
  isXmlSafe,
  parseXml,
  SLICE_BYTES,
  type XmlElement,
  XmlError,
} from './xml.ts';

const parseAll = (bytes: Uint8Array) => atOnce(parseXml(bytes));
const parse = (text: string) => parseAll(Buffer.from(text));

function refusal(bytes: Uint8Array): XmlError {
  try {
    parseAll(bytes);
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
    expect(findChild(root, 'B')?.text).toBe('x & <y>');
    expect(findChild(root, 'D')).toBeUndefined();
  });

  it("gives the position of an element's name in its tags", () => {
    const [b, c] = parse('<Aaa>\n  <Bb>x</Bb><Cc/></Aaa>').children;
    expect(b).toMatchObject({ line: 2, column: 4, endLine: 2, endColumn: 10 });
    expect(c).toMatchObject({ line: 2, column: 14, endLine: 2, endColumn: 14 });
  });

  it('reads UTF-16 with a byte order mark', () => {
    expect(parseAll(Buffer.from('\ufeff<A>é</A>', 'utf16le')).text).toBe('é');
  });

  it('says where a document is broken', () => {
    const error = refusal(Buffer.from('<A>\n<B></A>'));
    expect(error.line).toBe(2);
    expect(error.column).toBeGreaterThan(1);
    expect(error.message).not.toMatch(/^\d/);
  });

  it('refuses a document type, so that no entity can be declared', () => {
    const bomb = '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]><a>&c;</a>';
    expect(refusal(Buffer.from(bomb)).message).toContain('doctype');
    expect(refusal(Buffer.from('<a>&b;</a>'))).toBeInstanceOf(XmlError);
    expect(() => createXmlReader().write(Buffer.from('<!--a--> <!DOCTYPE'))).toThrow(XmlError);
    expect(parse('<!--<!DOCTYPE a>--><a><![CDATA[<!DOCTYPE]]></a>').text).toBe('<!DOCTYPE');
    expect(refusal(Buffer.from('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>'))).toBeInstanceOf(XmlError);
  });

  it('refuses versions other than 1.0: texts of 1.1 could not be written again', () => {
    for (const version of ['1.1', '2.0']) {
      expect(() => parseAll(Buffer.from(`<?xml version="${version}"?><a>&#1;</a>`))).toThrow(XmlError);
    }
    expect(parseAll(Buffer.from('<?xml version="1.0"?><a>\u0085\u2028</a>')).text).toBe('\u0085\u2028');
  });

  it('bounds the depth', () => {
    expect(parse('<a>'.repeat(16) + '</a>'.repeat(16)).name).toBe('a');
    expect(refusal(Buffer.from('<a>'.repeat(17) + '</a>'.repeat(17))).message).toContain('16');
  });

  it.each([
    ['attributes', '<a', ' b%="1"', XML_ATTRIBUTES_MAX, '/>'],
    ['text', '<a>', 'x', XML_TEXT_MAX - 3, '</a>'],
    ['text in pieces', `<a>${'x'.repeat(XML_TEXT_MAX - 1_000)}`, '<![CDATA[x]]>', 1_000, '</a>'],
    ['text with markup', '<a><![CDATA[', '<', XML_TEXT_MAX, ']]></a>'],
    ['a comment', '<a><!--', '<', XML_TEXT_MAX, '--></a>'],
    ['a processing instruction', '<a><?b ', '<', XML_TEXT_MAX - 1, '?></a>'],
    ['comments together', `<a><!--${'x'.repeat(XML_TEXT_MAX - 1_000)}-->`, '<!--x-->', 1_000, '</a>'],
    ['comments', '<a>', '<!---->', XML_ASIDES_MAX, '</a>'],
    ['comments before the root', '', '<!---->', XML_ASIDES_MAX, '<a/>'],
    ['comments after the root', '<a/>', '<!---->', XML_ASIDES_MAX, ''],
    ['processing instructions', '<a>', '<?b?>', XML_ASIDES_MAX, '</a>'],
    ['CDATA sections', '<a>', '<![CDATA[]]>', XML_ASIDES_MAX, '</a>'],
    ['a name', '<a', 'a', XML_TEXT_MAX - 4, '/>'],
    ['white space after the root', '<a/>', ' ', XML_TEXT_MAX - 4, ''],
  ])('bounds %s', (_, start, unit, most, end) => {
    const document = (count: number) =>
      `${start}${Array.from({ length: count }, (_, at) => unit.replace('%', String(at))).join('')}${end}`;
    expect(parse(document(most)).name).toMatch(/^a/);
    expect(refusal(Buffer.from(document(most + 1))).message).toContain('more than');
  });

  it('reads nothing after the limit is reached', () => {
    let yields = 0;
    const document = Buffer.from(`<a>${'&#65;'.repeat(1_600_000)}</a>`);
    expect(() => atOnce(parseXml(document), () => yields++)).toThrow(XmlError);
    expect(yields).toBe(Math.floor(XML_TEXT_MAX / SLICE_BYTES));
  });

  it('accepts a comment and a CDATA section for each element, of however many', () => {
    const document = `<?xml version="1.0"?><!-- of a client --><a>${'<b><![CDATA[x]]></b>'.repeat(2 * XML_ASIDES_MAX)}</a>`;
    expect(parse(document).children).toHaveLength(2 * XML_ASIDES_MAX);
  });

  it.each([
    ['comments', '<a>', '<!---->'],
    ['comments in front', '', '<!---->'],
    ['processing instructions', '<a>', '<?a?>'],
    ['CDATA sections', '<a>', '<![CDATA[]]>'],
    ['one comment', '<a><!--', '<'],
    ['one comment in front', '<!--', '<'],
    ['one processing instruction', '<a><?a ', '<'],
    ['one CDATA section', '<a><![CDATA[', '<'],
    ['a document type', '<!DOCTYPE a [', '<!ENTITY b "c">'],
    ['a document type after a comment', '<!--<!DOCTYPE--> <!DOCTYPE a "', 'c'],
  ])('looks at no more than a few slices of %s that never end', (_, start, unit) => {
    const reader = createXmlReader(() => {}, BLOCK_LIST_TEXT_MAX);
    const bytes = Buffer.from(start + unit.repeat((6 * SLICE_BYTES) / unit.length));
    const write = () => {
      for (let from = 0; from < bytes.length; from += SLICE_BYTES)
        reader.write(bytes.subarray(from, from + SLICE_BYTES));
    };
    expect(write).toThrow(XmlError);
  });

  it('refuses a document that is empty, not UTF-8, or has two roots', () => {
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
          parseAll(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(XmlError);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('writing XML', () => {
  it('escapes special characters', () => {
    expect(escapeXml(`a<b>&"c"'d'\r`)).toBe('a&lt;b&gt;&amp;&quot;c&quot;&apos;d&apos;&#xD;');
    expect(escapeXml('plain/name.txt')).toBe('plain/name.txt');
  });

  it('recognizes text that XML cannot carry', () => {
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
      expect(isXmlSafe(text), JSON.stringify(text)).toBe(false);
    }
    for (const text of ['', 'a b', '\t\n\r', 'é', '\u{1f600}', '\ufffd', '\u007f', '\ue000']) {
      expect(isXmlSafe(text), JSON.stringify(text)).toBe(true);
    }
  });

  it('round-trips every text that XML can carry', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        fc.pre(isXmlSafe(text));
        expect(parse(`<a>${escapeXml(text)}</a>`).text).toBe(text);
      }),
    );
  });

  it('gives a document that can be parsed even for text that XML cannot carry', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => parse(`<a>${escapeXml(text)}</a>`).name === 'a'));
  });
});

describe('A document that comes in pieces', () => {
  const text = '<?xml version="1.0"?>\r\n<Root a="1">\u00e4<A>x</A><B><C>\u{1F600}</C></B>\n<A/><!-- c --></Root>';

  const inPieces = (bytes: Uint8Array, size: number, onChild?: (child: XmlElement) => void) => {
    const reader = createXmlReader(onChild);
    for (let from = 0; from < bytes.length; from += size) reader.write(bytes.subarray(from, from + size));
    return reader.end();
  };

  it.each([1, 2, 3, 7])('is read as if it had come at once, in UTF-8 and UTF-16: %i bytes at a time', (size) => {
    const whole = parseAll(Buffer.from(text));
    expect(inPieces(Buffer.from(text), size)).toEqual(whole);
    expect(inPieces(Buffer.from(`\ufeff${text}`), size)).toEqual(whole);
    expect(inPieces(Buffer.from(`\ufeff${text}`, 'utf16le'), size)).toEqual(whole);
  });

  it('hands over the children of the root one by one, and keeps none', () => {
    const seen: string[] = [];
    const root = inPieces(Buffer.from(text), 5, ({ name, children }) => seen.push(`${name}${children.length}`));
    expect(seen).toEqual(['A0', 'B1', 'A0']);
    expect(root).toMatchObject({ name: 'Root', children: [] });
  });

  it('may have any number of children then', () => {
    const reader = createXmlReader(() => count++);
    let count = 0;
    reader.write(Buffer.from('<R>'));
    const children = Buffer.from('<a/>'.repeat(1_000));
    for (let i = 0; i < 150; i++) reader.write(children);
    reader.write(Buffer.from('</R>'));
    reader.end();
    expect(count).toBe(150_000);
  });

  it.each(['', '<', '<R>', '<R></R', '<R></R><S/>', 'x', '<R><a></R>'])('is refused: %j', (wrong) => {
    expect(() => inPieces(Buffer.from(wrong), 1)).toThrow(XmlError);
  });

  it('is refused when it ends in the middle of a character', () => {
    const bytes = Buffer.from('<R>\u00e4');
    expect(() => inPieces(bytes.subarray(0, -1), 2)).toThrow(XmlError);
  });
});
