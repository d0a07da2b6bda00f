/** XML elements of list replies that the services share. */
import { formatRfc1123 } from '../../base/time.ts';
import { escapeXml } from '../../base/xml.ts';
import { formatDeletedVersion } from '../../services/common/deleted-names.ts';

/** The parameters of the request, which a list reply repeats. */
export interface ListParameters {
  readonly prefix?: string | undefined;
  readonly marker?: string | undefined;
  readonly resultsMax?: number | undefined;
  readonly delimiter?: string | undefined;
}

export function parameterElements({ prefix, marker, resultsMax, delimiter }: ListParameters): string {
  return (
    (prefix === undefined ? '' : element('Prefix', prefix)) +
    (marker === undefined ? '' : element('Marker', marker)) +
    (resultsMax === undefined ? '' : element('MaxResults', String(resultsMax))) +
    (delimiter === undefined ? '' : element('Delimiter', delimiter))
  );
}

export function metadataElements(metadata: Readonly<Record<string, string>>): string {
  let xml = '';
  for (const name in metadata) xml += `<${name}>${escapeXml(metadata[name]!)}</${name}>`;
  return xml === '' ? '<Metadata />' : `<Metadata>${xml}</Metadata>`;
}

export function element(name: string, text: string | undefined): string {
  return text ? `<${name}>${escapeXml(text)}</${name}>` : `<${name} />`;
}

/** Of a deleted container or share, after its name. */
export const deletedElements = (deleted: bigint): string =>
  `<Deleted>true</Deleted><Version>${formatDeletedVersion(deleted)}</Version>`;

/** Likewise, at the end of its properties. */
export function retentionElements({
  deleted,
  remainingDays,
}: {
  readonly deleted: bigint;
  readonly remainingDays: number;
}): string {
  return (
    `<DeletedTime>${formatRfc1123(deleted)}</DeletedTime>` +
    `<RemainingRetentionDays>${remainingDays}</RemainingRetentionDays>`
  );
}
