/** XML: a reader with limits and without DTDs, and escaping for documents that are written as template strings. */
import { createRequire } from 'node:module';
import type * as saxes from 'saxes';
import { XML_ASIDES_MAX, XML_ATTRIBUTES_MAX, XML_TEXT_MAX } from './input-limits.ts';
import type { SlicedWork } from './time-slices.ts';
import { createXmlDecoder } from './xml-decoder.ts';

export interface XmlElement {
  readonly name: string;
  /** The character data directly inside, in one piece. */
  readonly text: string;
  readonly children: readonly XmlElement[];
  /** Position of the name in the start tag, both counted from 1. */
  readonly line: number;
  readonly column: number;
  /** Position of the name in the end tag, where a fault of the whole element is reported. */
  readonly endLine: number;
  readonly endColumn: number;
}

/** A document that cannot be read; line and column are counted from 1. */
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

/** Loads the parser with the first document: the start of a server needs no parser. */
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

/** Parsing this many bytes takes about a millisecond where there are many elements, entities or attributes. */
export const SLICE_BYTES = 8 << 10;

/** @returns the root element. The document is UTF-8, or UTF-16 with a byte order mark. The caller limits its length. */
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

/**
 * For a document that arrives in pieces.
 * @param onChild gets the children of the root, which are then not kept, so that there may be any number
 */
export function createXmlReader(onChild?: (child: XmlElement) => void, textMax = XML_TEXT_MAX): XmlReader {
  return new LimitedXmlReader(onChild, textMax);
}

class LimitedXmlReader implements XmlReader {
  readonly #parser: saxes.SaxesParser;
  readonly #decode: (bytes: Uint8Array | undefined) => string;
  readonly #onChild: ((child: XmlElement) => void) | undefined;
  readonly #textMax: number;
  /** From the root to the current element. */
  readonly #open: OpenElement[] = [];
  #root: OpenElement | undefined;
  #elements = 0;
  /** Of the current start tag. */
  #attributes = 0;
  /** Comments, processing instructions and CDATA sections, minus one for each element. */
  #asides = 0;
  /** Characters of comments and processing instructions. */
  #asideLength = 0;
  /** Characters written to the parser, and of these the position of its last event. The parser buffers all characters after it. */
  #written = 0;
  #emittedAt = 0;
  /** Characters since the last `<`, which the parser buffers until the next one. */
  #sinceLastTag = 0;

  constructor(onChild: ((child: XmlElement) => void) | undefined, textMax: number) {
    this.#onChild = onChild;
    this.#textMax = textMax;
    this.#decode = createXmlDecoder((reason) => this.#refuse(reason));
    const { SaxesParser }: typeof saxes = require('saxes');
    // A text of XML 1.1 can hold characters that no document of 1.0 can.
    const parser = new SaxesParser({ defaultXMLVersion: '1.0', forceXMLVersion: true });
    this.#parser = parser;
    // The parser reports a document type at its end, but refuses a second one at its beginning: this makes each one the second.
    Object.assign(parser, { doctype: true });
    parser.on('error', (error) => this.#refuse(error.message.replace(/^\d+:\d+: /, '')));
    parser.on(
      'xmldecl',
      ({ version }) => void (version === '1.0' || this.#refuse('XML of version 1.0 is understood.')),
    );
    parser.on('doctype', () => this.#refuse('A document type declaration is not allowed.'));
    parser.on('attribute', () => {
      if (++this.#attributes > XML_ATTRIBUTES_MAX)
        this.#refuse(`An element has more than ${XML_ATTRIBUTES_MAX} attributes.`);
    });
    parser.on('opentagstart', ({ name }) => this.#openElement(name));
    parser.on('closetag', ({ name, isSelfClosing }) => this.#closeElement(name, isSelfClosing));
    parser.on('text', (text) => this.#addText(text));
    parser.on('cdata', (text) => {
      this.#countAside();
      this.#addText(text);
    });
    parser.on('comment', (text) => this.#skip(text.length));
    parser.on('processinginstruction', ({ target, body }) => this.#skip(target.length + body.length));
  }

  write(bytes: Uint8Array): void {
    const text = this.#decode(bytes);
    const first = text.indexOf('<');
    if (this.#sinceLastTag + (first < 0 ? text.length : first) > this.#textMax) this.#refuseText();
    this.#sinceLastTag = first < 0 ? this.#sinceLastTag + text.length : text.length - text.lastIndexOf('<');
    this.#parser.write(text);
    this.#written += text.length;
    if (this.#written - this.#emittedAt > this.#textMax) this.#refuseText();
  }

  end(): XmlElement {
    this.#parser.write(this.#decode(undefined)).close();
    return this.#root ?? this.#refuse('There is no root element.');
  }

  #openElement(name: string): void {
    const { line, column: after } = this.#parser;
    const open = this.#open;
    this.#attributes = 0;
    this.#emittedAt = this.#parser.position;
    if (this.#asides > 0) this.#asides--;
    if (open.length >= DEPTH_MAX) this.#refuse(`Elements are nested more than ${DEPTH_MAX} deep.`);
    if (++this.#elements > ELEMENTS_MAX) this.#refuse(`There are more than ${ELEMENTS_MAX} elements.`);
    const column = after - name.length;
    const element: OpenElement = { name, text: '', children: [], line, column, endLine: line, endColumn: column };
    const parent = open.at(-1);
    if (!this.#onChild || parent !== this.#root) parent?.children.push(element);
    this.#root ??= element;
    open.push(element);
  }

  #closeElement(name: string, isSelfClosing: boolean): void {
    const element = this.#open.pop()!;
    this.#emittedAt = this.#parser.position;
    if (!isSelfClosing) {
      element.endLine = this.#parser.line;
      element.endColumn = this.#parser.column - name.length;
    }
    if (!this.#onChild || this.#open.length !== 1) return;
    this.#elements = 1;
    this.#onChild(element);
  }

  #addText(text: string): void {
    this.#emittedAt = this.#parser.position;
    const element = this.#open.at(-1);
    if (!element) return;
    if (element.text.length + text.length > this.#textMax) this.#refuseText();
    element.text += text;
  }

  #skip(length: number): void {
    this.#emittedAt = this.#parser.position;
    this.#countAside();
    this.#asideLength += length;
    if (this.#asideLength > this.#textMax) this.#refuse(`There are more than ${this.#textMax} characters of comments.`);
  }

  #countAside(): void {
    if (++this.#asides > XML_ASIDES_MAX) this.#refuse(`There are more than ${XML_ASIDES_MAX} comments or sections.`);
  }

  #refuseText(): never {
    return this.#refuse(`There are more than ${this.#textMax} characters of text in one place.`);
  }

  #refuse(reason: string): never {
    throw new XmlError(reason, this.#parser.line, this.#parser.column + 1);
  }
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

// XML 1.0 forbids control characters, lone surrogates, and the last two code points of the first plane.
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
