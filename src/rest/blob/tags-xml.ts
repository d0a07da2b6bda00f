/** Tags of a blob: XML to and from pairs. */
import { escapeXml, isXmlSafe, type XmlElement } from '../../base/xml.ts';
import type { Tag, Tags } from '../../rules/tags.ts';
import type { FindBlobsInput, FoundBlob } from '../../services/blob/find-blobs.ts';
import { element } from '../xml/list-elements.ts';
import { checkElementName, childrenByName, requiredChild } from '../xml/xml-nodes.ts';

export function parseTagsXml(root: XmlElement): Tags {
  childrenByName(root, ['TagSet']);
  return requiredChild(root, 'TagSet').children.map((tag): Tag => {
    checkElementName(tag, 'Tag');
    childrenByName(tag, ['Key', 'Value']);
    return [requiredChild(tag, 'Key').text, requiredChild(tag, 'Value').text];
  });
}

export function tagsElement(tags: Tags): string {
  let xml = '';
  for (const [key, value] of tags) xml += `<Tag><Key>${escapeXml(key)}</Key><Value>${escapeXml(value)}</Value></Tag>`;
  return `<Tags>${xml === '' ? '<TagSet />' : `<TagSet>${xml}</TagSet>`}</Tags>`;
}

export function foundListStart(endpoint: string, { marker, where, resultsMax }: FindBlobsInput): Buffer {
  return Buffer.from(
    `<EnumerationResults ServiceEndpoint="${escapeXml(endpoint)}">${marker ? element('Marker', marker) : ''}` +
      `${element('Where', where)}${resultsMax === undefined ? '' : `<MaxResults>${resultsMax}</MaxResults>`}<Blobs>`,
  );
}

export function foundElements(blobs: readonly FoundBlob[]): Buffer {
  let xml = '';
  for (const { container, name, tags } of blobs)
    xml += `<Blob>${nameElement(name)}<ContainerName>${escapeXml(container)}</ContainerName>${tagsElement(tags)}</Blob>`;
  return Buffer.from(xml);
}

/** A name with characters that XML does not have is percent-encoded. */
export function nameElement(name: string): string {
  // A carriage return could be escaped, but some clients do not unescape it.
  if (isXmlSafe(name) && !name.includes('\r')) return `<Name>${escapeXml(name)}</Name>`;
  return `<Name Encoded="true">${encodeURIComponent(name)}</Name>`;
}
