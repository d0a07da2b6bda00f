/** XML of List Shares. */
import { formatIso7, formatRfc1123 } from '../../base/time.ts';
import { escapeXml } from '../../base/xml.ts';
import type { ListedShare } from '../../services/file/list-shares.ts';
import { leaseElements } from '../lease-reply.ts';
import {
  deletedElements,
  element,
  type ListParameters,
  metadataElements,
  parameterElements,
  retentionElements,
} from '../xml/list-elements.ts';
import { hasLeases, hasTiers } from './share-reply.ts';

export function shareListStart(endpoint: string, parameters: ListParameters): Buffer {
  return Buffer.from(
    `<EnumerationResults ServiceEndpoint="${escapeXml(endpoint)}">${parameterElements(parameters)}<Shares>`,
  );
}

export function shareListEnd(nextMarker: string): Buffer {
  return Buffer.from(`</Shares>${element('NextMarker', nextMarker)}</EnumerationResults>`);
}

export function shareElements(shares: readonly ListedShare[], version: string, withMetadata: boolean): Buffer {
  let xml = '';
  for (const { name, share, leaseState, snapshot, deleted } of shares) {
    const { etag, modified, lease, quota, tier, tierChanged, metadata } = share;
    xml +=
      `<Share><Name>${escapeXml(name)}</Name>${snapshot === undefined ? '' : element('Snapshot', formatIso7(snapshot))}${deleted ? deletedElements(deleted.deleted) : ''}<Properties><Last-Modified>${formatRfc1123(modified)}</Last-Modified>` +
      `<Etag>"${etag}"</Etag>${hasLeases(version) ? leaseElements(lease, leaseState) : ''}<Quota>${quota}</Quota>` +
      (hasTiers(version)
        ? `<AccessTier>${tier}</AccessTier><AccessTierChangeTime>${formatRfc1123(tierChanged)}</AccessTierChangeTime>` +
          '<DefaultEncryptionScope>$account-encryption-key</DefaultEncryptionScope>' +
          '<DenyEncryptionScopeOverride>false</DenyEncryptionScopeOverride>'
        : '') +
      `${deleted ? retentionElements(deleted) : ''}</Properties>${withMetadata ? metadataElements(metadata) : ''}</Share>`;
  }
  return Buffer.from(xml);
}
