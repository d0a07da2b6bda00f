/** XML of List Containers and List Blobs. */
import { formatIso7, formatRfc1123 } from '../../base/time.ts';
import { escapeXml } from '../../base/xml.ts';
import type { ListedContainer } from '../../services/blob/list-containers.ts';
import type { ListedBlob, ListedItem } from '../../services/blob/listing.ts';
import { blobTypeOf } from '../../services/blob/rows.ts';
import { copyElements } from '../copy-reply.ts';
import { leaseElements } from '../lease-reply.ts';
import {
  deletedElements,
  element,
  type ListParameters,
  metadataElements,
  parameterElements,
  retentionElements,
} from '../xml/list-elements.ts';
import { incrementalElements, typeElements } from './blob-types.ts';
import { nameElement, tagsElement } from './tags-xml.ts';
import { pageTierElement, tierElements } from './tier-reply.ts';

export function containerListStart(endpoint: string, parameters: ListParameters): Buffer {
  return Buffer.from(
    `<EnumerationResults ServiceEndpoint="${escapeXml(endpoint)}">${parameterElements(parameters)}<Containers>`,
  );
}

export function containerListEnd(nextMarker: string): Buffer {
  return Buffer.from(`</Containers>${element('NextMarker', nextMarker)}</EnumerationResults>`);
}

export function containerElements(containers: readonly ListedContainer[], withMetadata: boolean): Buffer {
  let xml = '';
  for (const { name, container, leaseState, deleted } of containers) {
    const { etag, modified, lease, access, metadata } = container;
    xml +=
      `<Container><Name>${escapeXml(name)}</Name>${deleted ? deletedElements(deleted.deleted) : ''}<Properties><Last-Modified>${formatRfc1123(modified)}</Last-Modified>` +
      `<Etag>"${etag}"</Etag>${leaseElements(lease, leaseState)}` +
      (access ? `<PublicAccess>${access}</PublicAccess>` : '') +
      '<DefaultEncryptionScope>$account-encryption-key</DefaultEncryptionScope>' +
      '<DenyEncryptionScopeOverride>false</DenyEncryptionScopeOverride>' +
      '<HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold>' +
      '<ImmutableStorageWithVersioningEnabled>false</ImmutableStorageWithVersioningEnabled>' +
      `${deleted ? retentionElements(deleted) : ''}</Properties>` +
      `${withMetadata ? metadataElements(metadata) : ''}</Container>`;
  }
  return Buffer.from(xml);
}

export function blobListStart(endpoint: string, parameters: ListParameters & { readonly container: string }): Buffer {
  const container = escapeXml(parameters.container);
  return Buffer.from(
    `<EnumerationResults ServiceEndpoint="${escapeXml(endpoint)}" ContainerName="${container}">${parameterElements(parameters)}<Blobs>`,
  );
}

export function blobListEnd(nextMarker: string): Buffer {
  return Buffer.from(`</Blobs>${element('NextMarker', nextMarker)}</EnumerationResults>`);
}

interface IncludedFields {
  readonly metadata: boolean;
  readonly copy: boolean;
  readonly tags: boolean;
}

export function blobListElements(items: readonly ListedItem[], included: IncludedFields): Buffer {
  let xml = '';
  for (const item of items) xml += 'prefix' in item ? prefixElement(item.prefix) : blobElement(item, included);
  return Buffer.from(xml);
}

function prefixElement(prefix: string): string {
  return `<BlobPrefix>${nameElement(prefix)}</BlobPrefix>`;
}

function blobElement(item: ListedBlob, included: IncludedFields): string {
  const { name, blob, lease, leaseState, tier } = item;
  if (!blob) {
    return (
      `<Blob>${nameElement(name)}<Properties><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType>` +
      `${tierElements(tier)}${leaseElements(lease, leaseState)}` +
      '<ServerEncrypted>false</ServerEncrypted></Properties></Blob>'
    );
  }
  const isBlock = blobTypeOf(blob) === 'block';
  const { contentType, contentEncoding, contentLanguage, contentMd5, cacheControl, contentDisposition } = blob.content;
  return (
    `<Blob>${nameElement(name)}${stateElements(item)}<Properties>` +
    `<Creation-Time>${formatRfc1123(blob.created)}</Creation-Time>` +
    `<Last-Modified>${formatRfc1123(blob.modified)}</Last-Modified><Etag>${blob.etag}</Etag>` +
    `<Content-Length>${blob.length}</Content-Length>${element('Content-Type', contentType)}` +
    `${element('Content-Encoding', contentEncoding)}${element('Content-Language', contentLanguage)}<Content-CRC64 />` +
    `${element('Content-MD5', contentMd5)}${element('Cache-Control', cacheControl)}` +
    `${element('Content-Disposition', contentDisposition)}${typeElements(blob)}` +
    `${isBlock ? tierElements(tier) : pageTierElement(blob)}${leaseElementsOf(item)}` +
    `${included.copy && blob.copy ? copyElements(blob.copy) : ''}<ServerEncrypted>true</ServerEncrypted>` +
    `${incrementalElements(blob, included.copy)}` +
    `${blob.append?.isSealed ? '<Sealed>true</Sealed>' : ''}` +
    `${deletionElements(item)}` +
    `${blob.tags.length > 0 ? `<TagCount>${blob.tags.length}</TagCount>` : ''}</Properties>` +
    `${included.metadata ? metadataElements(blob.metadata) : ''}` +
    `${included.tags && blob.tags.length > 0 ? tagsElement(blob.tags) : ''}<OrMetadata /></Blob>`
  );
}

function stateElements({ snapshot, deletion }: ListedBlob): string {
  const moment = snapshot === undefined ? '' : `<Snapshot>${formatIso7(snapshot)}</Snapshot>`;
  return deletion ? `${moment}<Deleted>true</Deleted>` : moment;
}

/** As recorded: a snapshot has no lease, and that of a deleted blob is not shown. */
function leaseElementsOf({ snapshot, deletion, lease, leaseState }: ListedBlob): string {
  if (snapshot !== undefined) return '';
  return deletion ? '<LeaseStatus />' : leaseElements(lease, leaseState);
}

function deletionElements({ deletion }: ListedBlob): string {
  if (!deletion) return '';
  const { deleted, remainingDays } = deletion;
  return (
    `<DeletedTime>${formatRfc1123(deleted)}</DeletedTime>` +
    `<RemainingRetentionDays>${remainingDays}</RemainingRetentionDays>`
  );
}
