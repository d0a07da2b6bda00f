/** XML in and out: documents are read with bounds and without a DTD, and written as template strings. */
import { createRequire } from 'node:module';
import type * as saxes from 'saxes';
import { XML_ASIDES_MAX, XML_ATTRIBUTES_MAX, XML_TEXT_MAX } from './input-limits.ts';
import type { SlicedWork } from './time-slices.ts';

export interface XmlElement {
  readonly name: string;
  /** The character data directly inside, in one piece. */
  readonly text: string;
  readonly children: readonly XmlElement[];
  /** Where its name stands in the start tag, both counted from 1. */
  readonly line: number;
  readonly column: number;
  /** Where it stands in the end tag: what is wrong with an element as a whole is reported from there. */
  readonly endLine: number;
  readonly endColumn: number;
}

/** The document is not what was asked for; both counted from 1. */
export class XmlError extends Error {
  override readonly name = 'XmlError';
  readonly line: number;
  readonly column: number;

  constructor(message: string, line: number, column: number) {
    super(message);
    this.line = line;
    this.column = column;
  }
}

/** The parser is loaded with the first document: a start needs none, and would wait for it. */
const require = createRequire(import.meta.url);

const DEPTH_MAX = 16;
const ELEMENTS_MAX = 100_000;

interface OpenElement {
  name: string;
  text: string;
  children: OpenElement[];
  line: number;
  column: number;
  endLine: number;
  endColumn: number;
}

/** Parsing takes about a millisecond for so many, where there are many elements, entities or attributes. */
export const SLICE_BYTES = 8 << 10;

/** The root element. UTF-8, or UTF-16 if a byte order mark says so. How many bytes are too many is the caller's to say. */
export function* parseXml(bytes: Uint8Array): SlicedWork<XmlElement> {
  const reader = createXmlReader();
  for (let from = 0; from < bytes.length; from += SLICE_BYTES) {
    if (from > 0) yield;
    reader.write(bytes.subarray(from, from + SLICE_BYTES));
  }
  return reader.end();
}

export interface XmlReader {
  write(bytes: Uint8Array): void;
  end(): XmlElement;
}

/** For a document that comes in pieces. Children of the root are handed to `onChild` and not kept, so that there may be any number. */
export function createXmlReader(onChild?: (child: XmlElement) => void, textMax = XML_TEXT_MAX): XmlReader {
  // In XML 1.1 a text may hold what no document of 1.0 can give back.
  const { SaxesParser }: typeof saxes = require('saxes');
  const parser = new SaxesParser({ defaultXMLVersion: '1.0', forceXMLVersion: true });
  const open: OpenElement[] = [];
  let root: OpenElement | undefined;
  let elements = 0;
  let attributes = 0;
  /** Since the last `<`: the parser keeps it until the next one. */
  let sinceLastTag = 0;
  /** Where the parser has last given something: it keeps what follows, even if a `<` is in it. */
  let emittedAt = 0;
  let written = 0;
  /** Comments, processing instructions and CDATA sections, less one for each element. */
  let asides = 0;
  /** Characters of comments and processing instructions. */
  let asideLength = 0;
  const refuse = (reason: string): never => {
    throw new XmlError(reason, parser.line, parser.column + 1);
  };
  const decode = createDecoder(refuse);
  parser.on('error', (error) => refuse(error.message.replace(/^\d+:\d+: /, '')));
  parser.on('xmldecl', ({ version }) => void (version === '1.0' || refuse('XML of version 1.0 is understood.')));
  // The parser tells of a document type where it ends, but refuses a second one where it begins: let each be the second.
  Object.assign(parser, { doctype: true });
  parser.on('doctype', () => refuse('A document type declaration is not allowed.'));
  parser.on('attribute', () => {
    if (++attributes > XML_ATTRIBUTES_MAX) refuse(`An element has more than ${XML_ATTRIBUTES_MAX} attributes.`);
  });
  parser.on('opentagstart', ({ name }) => {
    attributes = 0;
    emittedAt = parser.position;
    if (asides > 0) asides--;
    if (open.length >= DEPTH_MAX) refuse(`Elements are nested more than ${DEPTH_MAX} deep.`);
    if (++elements > ELEMENTS_MAX) refuse(`There are more than ${ELEMENTS_MAX} elements.`);
    const { line } = parser;
    const column = parser.column - name.length;
    const element: OpenElement = { name, text: '', children: [], line, column, endLine: line, endColumn: column };
    const parent = open.at(-1);
    if (!onChild || parent !== root) parent?.children.push(element);
    root ??= element;
    open.push(element);
  });
  parser.on('closetag', ({ name, isSelfClosing }) => {
    const element = open.pop()!;
    emittedAt = parser.position;
    if (!isSelfClosing) {
      element.endLine = parser.line;
      element.endColumn = parser.column - name.length;
    }
    if (!onChild || open.length !== 1) return;
    elements = 1;
    onChild(element);
  });
  const tooLong = () => refuse(`There are more than ${textMax} characters of text in one place.`);
  const addText = (text: string) => {
    emittedAt = parser.position;
    const element = open.at(-1);
    if (!element) return;
    if (element.text.length + text.length > textMax) tooLong();
    element.text += text;
  };
  const countAside = () => {
    if (++asides > XML_ASIDES_MAX) refuse(`There are more than ${XML_ASIDES_MAX} comments or sections.`);
  };
  const skip = (length: number) => {
    emittedAt = parser.position;
    countAside();
    asideLength += length;
    if (asideLength > textMax) refuse(`There are more than ${textMax} characters of comments.`);
  };
  parser.on('text', addText);
  parser.on('cdata', (text) => {
    countAside();
    addText(text);
  });
  parser.on('comment', (text) => skip(text.length));
  parser.on('processinginstruction', ({ target, body }) => skip(target.length + body.length));
  return {
    write: (bytes) => {
      const text = decode(bytes);
      const first = text.indexOf('<');
      if (sinceLastTag + (first < 0 ? text.length : first) > textMax) tooLong();
      sinceLastTag = first < 0 ? sinceLastTag + text.length : text.length - text.lastIndexOf('<');
      parser.write(text);
      written += text.length;
      if (written - emittedAt > textMax) tooLong();
    },
    end() {
      parser.write(decode(undefined)).close();
      return root ?? refuse('There is no root element.');
    },
  };
}

export function findChild(element: XmlElement, name: string): XmlElement | undefined {
  return element.children.find((child) => child.name === name);
}

/** For text and for attribute values in either kind of quotes. */
export function escapeXml(text: string): string {
  return SPECIAL.test(text) ? text.replace(ALL_SPECIAL, (character) => ESCAPES[character] ?? '\ufffd') : text;
}

/** Whether XML 1.0 can carry this text at all; no escape helps where it cannot. */
export function isXmlSafe(text: string): boolean {
  return !UNSAFE.test(text);
}

// What XML 1.0 forbids: control characters, surrogates that stand alone, and the last two code points of the first plane.
// A carriage return is allowed, but a parser turns it into a line feed unless it is escaped.
const FORBIDDEN =
  '[\\0-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff]|[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]';
const UNSAFE = new RegExp(FORBIDDEN);
const SPECIAL = new RegExp(`[&<>"'\\r]|${FORBIDDEN}`);
const ALL_SPECIAL = new RegExp(SPECIAL, 'g');
const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  '\r': '&#xD;',
};

/** Undefined: nothing follows. The first two bytes tell the encoding, and may come one by one. */
function createDecoder(refuse: (reason: string) => never): (bytes: Uint8Array | undefined) => string {
  let first: Uint8Array | undefined;
  let encoding = 'utf-8';
  let text: InstanceType<typeof TextDecoder> | undefined;
  return (bytes) => {
    let next = bytes;
    if (!text) {
      first = first && bytes ? Buffer.concat([first, bytes]) : (first ?? bytes);
      if (bytes && (!first || first.length < 2)) return '';
      if (first?.[0] === 0xff && first[1] === 0xfe) encoding = 'utf-16le';
      text = new TextDecoder(encoding, { fatal: true });
      next = first;
    }
    try {
      return text.decode(next, { stream: bytes !== undefined });
    } catch {
      return refuse(`The document is not valid ${encoding.toUpperCase()}.`);
    }
  };
}
