/** Row values: a format byte, then JSON, text or bytes. */
import type { Row } from './partition.ts';

const FORMAT = 1;

export class UnknownFormat extends Error {
  override readonly name = 'UnknownFormat';
}

export function encodeValue(value: object): Buffer {
  return encodeText(JSON.stringify(value));
}

export function decodeValue<T>(row: Pick<Row, 'value'>): T {
  return JSON.parse(decodeText(row)) as T;
}

export function encodeText(text: string): Buffer {
  return Buffer.from(String.fromCharCode(FORMAT) + text);
}

export function decodeText({ value }: Pick<Row, 'value'>): string {
  checkFormat(value);
  return value.toString('utf8', 1);
}

/** Bytes after the format byte; `more` after them. */
export function encodeBytes(bytes: Uint8Array, more?: Uint8Array): Buffer {
  const value = Buffer.allocUnsafe(1 + bytes.length + (more?.length ?? 0));
  value[0] = FORMAT;
  value.set(bytes, 1);
  if (more) value.set(more, 1 + bytes.length);
  return value;
}

export function decodeBytes({ value }: Pick<Row, 'value'>): Buffer {
  checkFormat(value);
  return value.subarray(1);
}

function checkFormat(value: Uint8Array): void {
  if (value[0] !== FORMAT) throw new UnknownFormat(`a row of format ${value[0]}, which this version does not know`);
}
