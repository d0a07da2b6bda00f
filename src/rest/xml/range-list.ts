/** The XML of Get Page Ranges and List Ranges, and its markers, which have Azure's form: the byte at which the next page of the list begins. */
import type { Reader } from '../operation.ts';
import { invalidQuery, reader } from '../params.ts';

export interface ListedRange {
  readonly from: number;
  readonly to: number;
  /** False: the range was cleared since the earlier snapshot. */
  readonly isWritten?: boolean | undefined;
}

export function rangeElements(ranges: readonly ListedRange[], writtenName: 'PageRange' | 'Range'): Buffer {
  let xml = '';
  for (const { from, to, isWritten = true } of ranges) {
    const name = isWritten ? writtenName : 'ClearRange';
    xml += `<${name}><Start>${from}</Start><End>${to - 1}</End></${name}>`;
  }
  return Buffer.from(xml);
}

/** @param isPaged the answer has a marker, even if nothing follows */
export function rangeListXml(
  root: 'PageList' | 'Ranges',
  parts: readonly Buffer[],
  next: number | undefined,
  isPaged: boolean,
): Buffer[] {
  const marker = next === undefined ? '' : formatMarker(next);
  const end = isPaged || next !== undefined ? `<NextMarker>${marker}</NextMarker>` : '';
  return [Buffer.from(`<${root}>`), ...parts, Buffer.from(`${end}</${root}>`)];
}

/** `2!16!` and, in base64, `000004!1024!`: each part has its length before it. */
function formatMarker(start: number): string {
  const text = String(start);
  const part = Buffer.from(`${String(text.length).padStart(6, '0')}!${text}!`).toString('base64');
  return `2!${part.length}!${part}`;
}

const MARKER = /^2!(\d{1,3})!([A-Za-z0-9+/=]{1,80})$/;
const PART = /^(\d{6})!(\d{1,15})!$/;

export const rangeListMarker: Reader<number | undefined> = reader(({ query }) => {
  const { marker } = query;
  if (marker === undefined || marker === '') return undefined;
  const [, length, part = ''] = MARKER.exec(marker) ?? [];
  const [, digits, start] = PART.exec(Buffer.from(part, 'base64').toString('latin1')) ?? [];
  if (Number(length) !== part.length || start === undefined || Number(digits) !== start.length)
    throw invalidQuery('marker', marker);
  return Number(start);
});
