/** Parses the request body of Put Message and Update Message. */
import { runSliced, type SlicedWork } from '../../base/time-slices.ts';
import type { XmlElement } from '../../base/xml.ts';
import type { BodyReader, Request } from '../operation.ts';
import { bodyTooLarge, invalidXml, parseDocument, xmlBody } from '../params.ts';
import { childrenByName, requiredChild } from '../xml/xml-nodes.ts';
import { isVersionBefore } from './params.ts';

const TEXT_BYTES_MAX = 64 << 10;
const OLD_TEXT_BYTES_MAX = 8 << 10;
/** A character of one byte can take six, as &quot; does; the elements around the text take a few more. */
const BODY_BYTES_MAX = TEXT_BYTES_MAX * 6 + 1024;

const ROOT = 'QueueMessage';
const { check } = xmlBody(ROOT);

/** Undefined: the body is empty. */
export const messageText = messageBody(readMessageText);

/** Of a new message, which must have a text. */
export const newMessageText = messageBody(function* (bytes, request) {
  const text = yield* readMessageText(bytes, request);
  if (text === undefined) throw invalidXml(1, 1, 'There is no document.');
  return text;
});

function messageBody<Value>(
  readIn: (bytes: Buffer, request: Request) => SlicedWork<Value>,
): BodyReader<Value | Promise<Value>> {
  return {
    kind: 'body',
    bytesMax: BODY_BYTES_MAX,
    tooLarge: (request) => bodyTooLarge(textBytesMax(request)),
    check,
    read: (bytes, request) => runSliced(readIn(bytes, request), bytes.length),
  };
}

function* readMessageText(bytes: Buffer, request: Request): SlicedWork<string | undefined> {
  const { headers } = request;
  const isHashed = headers['content-md5'] !== undefined || headers['x-ms-content-crc64'] !== undefined;
  const text =
    (isHashed ? undefined : yield* scanMessageText(bytes)) ??
    textFromDocument(yield* parseDocument(ROOT, bytes, request));
  const bytesMax = textBytesMax(request);
  if (text !== undefined && text.length * 3 > bytesMax && Buffer.byteLength(text) > bytesMax)
    throw bodyTooLarge(bytesMax);
  return text;
}

function textBytesMax(request: Request): number {
  return isVersionBefore(request, '2011-08-18') ? OLD_TEXT_BYTES_MAX : TEXT_BYTES_MAX;
}

function textFromDocument(root: XmlElement | undefined): string | undefined {
  if (!root) return undefined;
  childrenByName(root, ['MessageText']);
  const text = requiredChild(root, 'MessageText');
  childrenByName(text, []);
  return text.text;
}

const START =
  /^(?:<\?xml version=(?:'1\.0'|"1\.0")(?: encoding=(?:'[uU][tT][fF]-8'|"[uU][tT][fF]-8"))? ?\?>)?[ \t\r\n]*<QueueMessage>[ \t\r\n]*<MessageText>/;
const END = /<\/MessageText>[ \t\r\n]*<\/QueueMessage>[ \t\r\n]*$/;
/** More than the elements around a text take. */
const ENVELOPE_MAX = 256;
/** Characters that are invalid in a text, or need escaping. Lone surrogates need no check: UTF-8 has none. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: XML forbids them
const SUSPECT = /[\0-\x08\x0b-\x1f<\ufffe\uffff]|\]\]>/;
const ENTITY = /&(?:(lt|gt|amp|quot|apos);)?/g;
const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };
/** `&quot;` */
const ENTITY_MAX = 6;
/** Replacing the entities of this many characters takes about a millisecond. */
const SLICE_CHARACTERS = 32 << 10;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The text of a document as clients usually write it, in a hundredth of the time of a parser. Undefined: the document needs the
 * parser.
 */
export function* scanMessageText(bytes: Uint8Array): SlicedWork<string | undefined> {
  let xml: string;
  try {
    xml = utf8.decode(bytes);
  } catch {
    return undefined;
  }
  const start = START.exec(xml.slice(0, ENVELOPE_MAX))?.[0].length;
  const ending = END.exec(xml.slice(-ENVELOPE_MAX))?.[0].length;
  if (start === undefined || ending === undefined || start + ending > xml.length) return undefined;
  const text = xml.slice(start, xml.length - ending);
  if (SUSPECT.test(text)) return undefined;
  if (!text.includes('&')) return text;
  let plain = '';
  for (let from = 0; from < text.length; ) {
    if (from > 0) yield;
    const to = sliceEnd(text, from);
    const slice = decodeEntities(text.slice(from, to));
    if (slice === undefined) return undefined;
    plain += slice;
    from = to;
  }
  return plain;
}

/** A slice never ends within an entity. */
function sliceEnd(text: string, from: number): number {
  const end = from + SLICE_CHARACTERS;
  if (end >= text.length) return text.length;
  const last = text.slice(end - ENTITY_MAX, end).lastIndexOf('&');
  return last < 0 ? end : end - ENTITY_MAX + last;
}

function decodeEntities(text: string): string | undefined {
  let isPlain = true;
  const plain = text.replace(ENTITY, (_, name?: string) => {
    if (name === undefined) isPlain = false;
    return name === undefined ? '' : ENTITIES[name]!;
  });
  return isPlain ? plain : undefined;
}
