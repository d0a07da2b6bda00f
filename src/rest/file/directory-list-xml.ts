/** XML of List Directories and Files. */
import { formatIso7, formatRfc1123 } from '../../base/time.ts';
import { escapeXml } from '../../base/xml.ts';
import type { ListedEntry } from '../../services/file/listing.ts';
import type { Directory, Node } from '../../services/file/node-rows.ts';
import { formatAttributes } from '../../services/file/smb-properties.ts';
import { element, type ListParameters } from '../xml/list-elements.ts';

export const INCLUDED = ['timestamps', 'etag', 'attributes', 'permissionkey'] as const;
export type Included = (typeof INCLUDED)[number];

export interface DirectoryListParameters extends ListParameters {
  readonly share: string;
  readonly path: string;
  readonly isExtended: boolean;
  readonly snapshot: bigint | undefined;
}

/** XML has no such characters: names that have one are percent-encoded. */
const NOT_IN_XML = /[\ufffe\uffff]/;

export function directoryListStart(
  endpoint: string,
  directory: Directory,
  parameters: DirectoryListParameters,
): Buffer {
  const { share, path, prefix, marker, resultsMax, isExtended, snapshot } = parameters;
  const isEncoded = NOT_IN_XML.test(path);
  return Buffer.from(
    `<EnumerationResults ServiceEndpoint="${escapeXml(endpoint)}" ShareName="${escapeXml(share)}" ` +
      `${snapshot === undefined ? '' : `ShareSnapshot="${formatIso7(snapshot)}" `}` +
      `DirectoryPath="${escapeXml(isEncoded ? encodeURIComponent(path) : path)}"${isEncoded ? ' Encoded="true"' : ''}>` +
      (prefix === undefined ? '' : textElement('Prefix', prefix)) +
      (marker === undefined ? '' : element('Marker', marker)) +
      (resultsMax === undefined ? '' : element('MaxResults', String(resultsMax))) +
      `${isExtended ? element('DirectoryId', directory.id.toString()) : ''}<Entries>`,
  );
}

export function directoryListEnd(nextMarker: string): Buffer {
  return Buffer.from(`</Entries>${element('NextMarker', nextMarker)}</EnumerationResults>`);
}

export function entryElements(
  entries: readonly ListedEntry[],
  include: readonly Included[],
  isExtended: boolean,
): Buffer {
  let xml = '';
  for (const { kind, name, node, found } of entries) {
    const tag = kind === 'file' ? 'File' : 'Directory';
    const properties = found ? propertyElements(found, include) : '';
    xml +=
      `<${tag}>${textElement('Name', name)}${isExtended ? `<FileId>${node}</FileId>` : ''}` +
      (properties === '' ? '<Properties />' : `<Properties>${properties}</Properties>`) +
      (found && include.includes('attributes') ? element('Attributes', formatAttributes(found.attributes)) : '') +
      (found && include.includes('permissionkey') ? element('PermissionKey', found.permission) : '') +
      `</${tag}>`;
  }
  return Buffer.from(xml);
}

function propertyElements(node: Node, include: readonly Included[]): string {
  const { creation, lastWrite, change } = node.times;
  return (
    (node.kind === 'file' ? `<Content-Length>${node.length}</Content-Length>` : '') +
    (include.includes('timestamps')
      ? `<CreationTime>${formatIso7(creation)}</CreationTime><LastAccessTime>${formatIso7(lastWrite)}</LastAccessTime>` +
        `<LastWriteTime>${formatIso7(lastWrite)}</LastWriteTime><ChangeTime>${formatIso7(change)}</ChangeTime>` +
        `<Last-Modified>${formatRfc1123(node.modified)}</Last-Modified>`
      : '') +
    (include.includes('etag') ? `<Etag>"${node.etag}"</Etag>` : '')
  );
}

function textElement(name: string, text: string): string {
  if (!NOT_IN_XML.test(text)) return element(name, text);
  return `<${name} Encoded="true">${encodeURIComponent(text)}</${name}>`;
}
