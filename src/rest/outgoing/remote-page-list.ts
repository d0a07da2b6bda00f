/** Get Page Ranges of another server: the request, and the ranges in its answer. */
import type { IncomingMessage } from 'node:http';
import { formatIso7 } from '../../base/time.ts';
import { runSliced } from '../../base/time-slices.ts';
import { findChild, parseXml, type XmlElement } from '../../base/xml.ts';
import { StorageError } from '../../services/common/errors.ts';
import type { PageList, PageListRequest } from '../../services/common/remote-sources.ts';

/** The version of the request: since 2020-10-02 a list comes in pages. */
export const PAGE_LIST_VERSION = '2021-12-02';
/** A few hundred ranges have some 20 KiB. */
const LIST_BYTES_MAX = 1 << 20;

export function pageListUrl({ url, since, limit }: PageListRequest): string {
  const previous = since === undefined ? '' : `&prevsnapshot=${encodeURIComponent(formatIso7(since))}`;
  return `${url}${url.includes('?') ? '&' : '?'}comp=pagelist&maxresults=${limit}${previous}`;
}

export async function readPageList(answer: IncomingMessage): Promise<PageList> {
  if (answer.statusCode !== 200) throw unusable(`it answers ${answer.statusCode}`);
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of answer as AsyncIterable<Buffer>) {
    parts.push(part);
    length += part.length;
    if (length > LIST_BYTES_MAX) throw unusable('it is too long');
  }
  const root = await parse(Buffer.concat(parts));
  const ranges = root.children.flatMap(readRange).sort((one, other) => one.from - other.from);
  const marker = findChild(root, 'NextMarker')?.text ?? '';
  // A marker without a range would never lead to the end.
  if (marker !== '' && ranges.length === 0) throw unusable('it does not go on');
  return { etag: answer.headers.etag?.replace(/^"(.*)"$/, '$1'), ranges, isAll: marker === '' };
}

async function parse(bytes: Buffer): Promise<XmlElement> {
  let root: XmlElement | undefined;
  try {
    root = await runSliced(parseXml(bytes), bytes.length);
  } catch {
    // It is no XML, and so no list.
  }
  if (root?.name !== 'PageList') throw unusable('it is no list');
  return root;
}

function readRange(element: XmlElement): PageList['ranges'] {
  if (element.name !== 'PageRange' && element.name !== 'ClearRange') return [];
  const [from, last] = ['Start', 'End'].map((name) => Number(findChild(element, name)?.text || Number.NaN));
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(last) || from! < 0 || last! < from!)
    throw unusable('it has a range without an end');
  return [{ from: from!, to: last! + 1, isWritten: element.name === 'PageRange' }];
}

function unusable(why: string): StorageError {
  return new StorageError('CannotVerifyCopySource', 409, `The list of the source's pages cannot be used: ${why}.`);
}
