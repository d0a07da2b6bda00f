import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { atOnce } from '../../../test/support/run-steps.ts';
import { escapeXml, isXmlSafe, parseXml } from '../../base/xml.ts';
import type { StorageError } from '../../services/common/errors.ts';
import type { Request } from '../operation.ts';
import { messageText, scanMessageText } from './message-body.ts';

const request = (headers: Record<string, string> = {}, version = '2025-07-05') =>
  ({ headers, version }) as never as Request;
const read = (body: string | Uint8Array, sent = request()) => messageText.read(Buffer.from(body), sent);
const character = fc
  .nat(0x10ffff)
  .map((code) => String.fromCodePoint(code))
  .filter(isXmlSafe);
const around = (text: string) => `<QueueMessage><MessageText>${text}</MessageText></QueueMessage>`;

function refusal(body: string | Uint8Array, sent?: Request): StorageError {
  try {
    read(body, sent);
  } catch (error) {
    return error as StorageError;
  }
  throw new Error('it was taken');
}

/** Of a long one, which is read in turns. */
const longRefusal = (body: string, sent?: Request) =>
  Promise.resolve(read(body, sent)).then(
    () => 'it was taken',
    (error: unknown) => error,
  );

describe('The text of a message', () => {
  it.each([
    ['plain', around('text'), 'text'],
    ['empty', around(''), ''],
    ['an empty element', '<QueueMessage><MessageText/></QueueMessage>', ''],
    ['blanks around it', around('  text\n\t'), '  text\n\t'],
    ['the five entities', around('&lt;a b=&quot;c&apos;&gt; &amp;amp;'), '<a b="c\'> &amp;'],
    ['numbers of characters', around('&#x1F600;&#13;&#10;'), '😀\r\n'],
    ['CDATA', around('<![CDATA[<b>&amp;</b>]]> and more'), '<b>&amp;</b> and more'],
    ['line ends, which a parser makes one', around('a\r\nb\rc'), 'a\nb\nc'],
    ['a comment', around('a<!-- no -->b'), 'ab'],
    [
      'a declaration, and blanks between',
      `<?xml version="1.0" encoding="utf-8"?>\n<QueueMessage>\n  <MessageText>t</MessageText>\n</QueueMessage>\n`,
      't',
    ],
    ['a byte order mark', `\ufeff${around('t')}`, 't'],
    ['attributes', '<QueueMessage xmlns:xsi="x"><MessageText a="b">t</MessageText></QueueMessage>', 't'],
    ['what looks like its own end', around('&lt;/MessageText&gt;'), '</MessageText>'],
  ])('is read: %s', (_, body, text) => {
    expect(read(body)).toBe(text);
  });

  it('is read from UTF-16', () => {
    expect(read(Buffer.from(`\ufeff${around('é')}`, 'utf16le'))).toBe('é');
  });

  it('is undefined where there is no document', () => {
    expect(read('')).toBeUndefined();
  });

  it.each([
    ['no XML', 'text'],
    ['an end that is missing', '<QueueMessage><MessageText>text'],
    ['a character that XML cannot carry', around('a\u0001b')],
    ['its number', around('a&#1;b')],
    ['a lone ampersand', around('a & b')],
    ['an unknown entity', around('&nbsp;')],
    ['the end of a CDATA section alone', around('a]]>b')],
    ['bytes that are no UTF-8', Buffer.from('<QueueMessage><MessageText>\xff</MessageText></QueueMessage>', 'latin1')],
    ['another root', '<Message><MessageText>t</MessageText></Message>'],
    ['the root in other letters', '<queuemessage><MessageText>t</MessageText></queuemessage>'],
    ['a blank that is none before the root', `\u00a0${around('t')}`],
    ['an element inside', around('<b>t</b>')],
    ['two texts', '<QueueMessage><MessageText>a</MessageText><MessageText>b</MessageText></QueueMessage>'],
    ['another element', '<QueueMessage><MessageText>a</MessageText><Other/></QueueMessage>'],
    ['a document type', `<!DOCTYPE a [<!ENTITY b "c">]>${around('&b;')}`],
  ])('is refused: %s', (_, body) => {
    expect(refusal(body)).toMatchObject({ status: 400, code: 'InvalidXmlDocument' });
  });

  it('must be there', () => {
    expect(refusal('<QueueMessage />')).toMatchObject({
      code: 'MissingRequiredXmlNode',
      details: { XmlNodeName: 'MessageText' },
    });
  });

  it('has up to 64 KiB in UTF-8, however it is escaped', async () => {
    for (const most of ['a'.repeat(65_536), 'é'.repeat(32_768), '<'.repeat(65_536), '"'.repeat(65_536)]) {
      expect(await read(around(escapeXml(most)))).toBe(most);
      expect(await longRefusal(around(escapeXml(`${most}a`)))).toMatchObject({
        status: 413,
        code: 'RequestBodyTooLarge',
        details: { MaxLimit: '65536' },
      });
    }
    expect(messageText.bytesMax).toBeGreaterThan(Buffer.byteLength(around('&quot;'.repeat(65_536))));
  });

  it('had up to 8 KiB before 2011-08-18', async () => {
    const before = request({}, '2009-09-19');
    expect(await read(around('a'.repeat(8_192)), before)).toHaveLength(8_192);
    expect(await longRefusal(around('a'.repeat(8_193)), before)).toMatchObject({
      status: 413,
      details: { MaxLimit: '8192' },
    });
    expect(messageText.tooLarge(before).details).toEqual({ MaxLimit: '8192' });
    expect(await read(around('a'.repeat(8_193)), request({}, '2011-08-18'))).toHaveLength(8_193);
    expect(await read(around('a'.repeat(8_193)), request({}, ''))).toHaveLength(8_193);
  });

  it('is held against the hash that came with it', () => {
    const wrong = request({ 'content-md5': 'AAAAAAAAAAAAAAAAAAAAAA==' });
    expect(refusal(around('text'), wrong)).toMatchObject({ code: 'Md5Mismatch' });
  });

  it('is what a parser reads, wherever it is read without one', () => {
    const pieces = fc.oneof(
      fc.constantFrom(
        '&',
        ';',
        '<',
        '>',
        '"',
        "'",
        '&lt;',
        '&gt;',
        '&amp;',
        '&quot;',
        '&apos;',
        '&#65;',
        ']]>',
        '<![CDATA[',
        '\r',
        '\n',
        '\u0001',
        '\ufffe',
        '</MessageText>',
        '</QueueMessage>',
        '<QueueMessage>',
      ),
      fc.string({ unit: 'grapheme' }),
    );
    let seen = 0;
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 6 }), (parts) => {
        const bytes = Buffer.from(around(parts.join('')));
        const plain = atOnce(scanMessageText(bytes));
        if (plain === undefined) return;
        seen++;
        expect(atOnce(parseXml(bytes)).children[0]!.text).toBe(plain);
      }),
      { numRuns: 2_000 },
    );
    expect(seen).toBeGreaterThan(100);
  });

  it('is read in slices, none of which ends within an entity', () => {
    for (let before = 0; before < 7; before++) {
      const begin = 'a'.repeat(before);
      let slices = 1;
      const steps = scanMessageText(Buffer.from(around(begin + '&quot;'.repeat(20_000))));
      expect(atOnce(steps, () => slices++)).toBe(begin + '"'.repeat(20_000));
      expect(slices).toBeGreaterThan(3);
    }
  });

  it('comes back as it went, whatever XML can carry', () => {
    fc.assert(
      fc.property(fc.string({ unit: character }), (text) => {
        expect(read(around(escapeXml(text)))).toBe(text);
      }),
    );
  });
});
