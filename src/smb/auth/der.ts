/** The part of ASN.1's DER that SPNEGO needs: elements of a tag and a length. */
import { WireError } from '../wire/reader.ts';

export interface DerElement {
  readonly tag: number;
  readonly content: Buffer;
  /** With tag and length. */
  readonly whole: Buffer;
}

/** The elements that stand in these bytes one after the other. */
export function readElements(bytes: Buffer): DerElement[] {
  const elements: DerElement[] = [];
  for (let at = 0; at < bytes.length; ) {
    const { start, length } = readLength(bytes, at + 1);
    if (start + length > bytes.length) throw new WireError('an element of DER is cut off');
    const content = bytes.subarray(start, start + length);
    elements.push({ tag: bytes[at]!, content, whole: bytes.subarray(at, start + length) });
    at = start + length;
  }
  return elements;
}

/** The only element in these bytes. */
export function readElement(bytes: Buffer, tag: number): DerElement {
  const [element, ...others] = readElements(bytes);
  if (element?.tag !== tag || others.length > 0) throw new WireError(`no element of DER with tag ${tag}`);
  return element;
}

export function encodeElement(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag, ...encodeLength(content.length)]), content]);
}

function readLength(bytes: Buffer, at: number): { start: number; length: number } {
  const first = bytes[at];
  if (first === undefined) throw new WireError('an element of DER has no length');
  if (first < 0x80) return { start: at + 1, length: first };
  const count = first & 0x7f;
  if (count === 0 || count > 4 || at + 1 + count > bytes.length) throw new WireError('a bad length of DER');
  return { start: at + 1 + count, length: bytes.readUIntBE(at + 1, count) };
}

function encodeLength(length: number): number[] {
  if (length < 0x80) return [length];
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
}
