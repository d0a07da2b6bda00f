/** The XML of the Blob service, in and out. */
import { rfc1123 } from '../../base/time.ts';
import { childOf, escapeXml, type XmlElement, xmlSafe } from '../../base/xml.ts';
import type { Listed, ListedBlob, ListedContainer } from '../../services/blob/listing.ts';
import type { AccessPolicy, CopyState } from '../../services/blob/rows.ts';
import { invalidNode, known } from '../xml-nodes.ts';
import { leaseElements } from './leases.ts';

export interface Echoed {
  readonly prefix?: string | undefined;
  readonly marker?: string | undefined;
  readonly resultsMax?: number | undefined;
  readonly delimiter?: string | undefined;
}

export function containerList(
  endpoint: string,
  asked: Echoed,
  containers: readonly ListedContainer[],
  nextMarker: string,
  withMetadata: boolean,
): string {
  let xml = `<EnumerationResults ServiceEndpoint="${escapeXml(endpoint)}">${echo(asked)}<Containers>`;
  for (const { name, container, leaseState } of containers) {
    const { etag, modified, lease, access, metadata } = container;
    xml +=
      `<Container><Name>${escapeXml(name)}</Name><Properties><Last-Modified>${rfc1123(modified)}</Last-Modified>` +
      `<Etag>"${etag}"</Etag>${leaseElements(lease, leaseState)}` +
      (access ? `<PublicAccess>${access}</PublicAccess>` : '') +
      '<DefaultEncryptionScope>$account-encryption-key</DefaultEncryptionScope>' +
      '<DenyEncryptionScopeOverride>false</DenyEncryptionScopeOverride>' +
      '<HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold>' +
      '<ImmutableStorageWithVersioningEnabled>false</ImmutableStorageWithVersioningEnabled></Properties>' +
      `${withMetadata ? metadataElements(metadata) : ''}</Container>`;
  }
  return `${xml}</Containers>${next(nextMarker)}</EnumerationResults>`;
}

export function blobListStart(endpoint: string, asked: Echoed & { readonly container: string }): Buffer {
  const container = escapeXml(asked.container);
  return Buffer.from(
    `<EnumerationResults ServiceEndpoint="${escapeXml(endpoint)}" ContainerName="${container}">${echo(asked)}<Blobs>`,
  );
}

export function blobListEnd(nextMarker: string): Buffer {
  return Buffer.from(`</Blobs>${next(nextMarker)}</EnumerationResults>`);
}

export interface Included {
  readonly metadata: boolean;
  readonly copy: boolean;
}

export function listElements(items: readonly Listed[], included: Included): Buffer {
  let xml = '';
  for (const item of items) xml += 'prefix' in item ? prefixElement(item.prefix) : blobElement(item, included);
  return Buffer.from(xml);
}

function prefixElement(prefix: string): string {
  return `<BlobPrefix>${nameElement(prefix)}</BlobPrefix>`;
}

function blobElement({ name, blob, lease, leaseState }: ListedBlob, included: Included): string {
  if (!blob) {
    return (
      `<Blob>${nameElement(name)}<Properties><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType>` +
      `<AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred>${leaseElements(lease, leaseState)}` +
      '<ServerEncrypted>false</ServerEncrypted></Properties></Blob>'
    );
  }
  const { contentType, contentEncoding, contentLanguage, contentMd5, cacheControl, contentDisposition } = blob.content;
  return (
    `<Blob>${nameElement(name)}<Properties><Creation-Time>${rfc1123(blob.created)}</Creation-Time>` +
    `<Last-Modified>${rfc1123(blob.modified)}</Last-Modified><Etag>${blob.etag}</Etag>` +
    `<Content-Length>${blob.length}</Content-Length>${element('Content-Type', contentType)}` +
    `${element('Content-Encoding', contentEncoding)}${element('Content-Language', contentLanguage)}<Content-CRC64 />` +
    `${element('Content-MD5', contentMd5)}${element('Cache-Control', cacheControl)}` +
    `${element('Content-Disposition', contentDisposition)}<BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier>` +
    `<AccessTierInferred>true</AccessTierInferred>${leaseElements(lease, leaseState)}` +
    `${included.copy && blob.copy ? copyElements(blob.copy) : ''}<ServerEncrypted>true</ServerEncrypted></Properties>` +
    `${included.metadata ? metadataElements(blob.metadata) : ''}<OrMetadata /></Blob>`
  );
}

function copyElements({ id, source, bytes, completed }: CopyState): string {
  return (
    `<CopyId>${id}</CopyId><CopySource>${escapeXml(source)}</CopySource><CopyStatus>success</CopyStatus>` +
    `<CopyProgress>${bytes}/${bytes}</CopyProgress><CopyCompletionTime>${rfc1123(completed)}</CopyCompletionTime>`
  );
}

/** XML cannot carry every character of a name: such a name goes percent-encoded. */
function nameElement(name: string): string {
  // A carriage return would pass, but some clients do not undo its escape.
  if (xmlSafe(name) && !name.includes('\r')) return `<Name>${escapeXml(name)}</Name>`;
  return `<Name Encoded="true">${encodeURIComponent(name)}</Name>`;
}

function metadataElements(metadata: Readonly<Record<string, string>>): string {
  let xml = '';
  for (const name in metadata) xml += `<${name}>${escapeXml(metadata[name]!)}</${name}>`;
  return xml === '' ? '<Metadata />' : `<Metadata>${xml}</Metadata>`;
}

function echo({ prefix, marker, resultsMax, delimiter }: Echoed): string {
  return (
    (prefix === undefined ? '' : element('Prefix', prefix)) +
    (marker === undefined ? '' : element('Marker', marker)) +
    (resultsMax === undefined ? '' : element('MaxResults', String(resultsMax))) +
    (delimiter === undefined ? '' : element('Delimiter', delimiter))
  );
}

function next(marker: string): string {
  return element('NextMarker', marker);
}

function element(name: string, text: string | undefined): string {
  return text ? `<${name}>${escapeXml(text)}</${name}>` : `<${name} />`;
}

export function policyList(policies: readonly AccessPolicy[]): string {
  let xml = '';
  for (const { id, start, expiry, permission } of policies) {
    const policy =
      (start ? element('Start', start) : '') +
      (expiry ? element('Expiry', expiry) : '') +
      (permission ? element('Permission', permission) : '');
    xml += `<SignedIdentifier><Id>${escapeXml(id)}</Id>${policy && `<AccessPolicy>${policy}</AccessPolicy>`}</SignedIdentifier>`;
  }
  return xml === '' ? '<SignedIdentifiers />' : `<SignedIdentifiers>${xml}</SignedIdentifiers>`;
}

const POLICIES_MAX = 5;
const POLICY_ID_MAX = 64;
const PERMISSIONS = /^[racwdxyltfmeopi]*$/;

export function readPolicies(root: XmlElement | undefined): AccessPolicy[] {
  const policies = (root?.children ?? []).map((identifier) => {
    known(identifier, 'SignedIdentifier');
    const id = childOf(identifier, 'Id')?.text.trim();
    if (!id || id.length > POLICY_ID_MAX)
      throw invalidNode(identifier, 'An identifier needs an Id of 1 to 64 characters.');
    const policy = childOf(identifier, 'AccessPolicy');
    const permission = policy && childOf(policy, 'Permission')?.text.trim();
    if (permission && !PERMISSIONS.test(permission)) throw invalidNode(policy, 'A permission is not known.');
    return {
      id,
      ...dateIn(policy, 'Start', 'start'),
      ...dateIn(policy, 'Expiry', 'expiry'),
      ...(permission ? { permission } : {}),
    };
  });
  if (policies.length > POLICIES_MAX) throw invalidNode(root!, `There are more than ${POLICIES_MAX} identifiers.`);
  if (new Set(policies.map(({ id }) => id)).size < policies.length) throw invalidNode(root!, 'An Id is there twice.');
  return policies;
}

const POLICY_DATE = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,7}))?)?Z)?$/;

/** Dates come back with seven digits, however they were sent. */
function dateIn<Name extends string>(policy: XmlElement | undefined, tag: string, name: Name) {
  const found = policy && childOf(policy, tag);
  const text = found?.text.trim();
  if (!text) return {};
  const [, day, minute = '00:00', second = '00', fraction = ''] = POLICY_DATE.exec(text) ?? [];
  if (!day || Number.isNaN(Date.parse(`${day}T${minute}:${second}Z`)))
    throw invalidNode(found!, `${tag} is not a date.`);
  return { [name]: `${day}T${minute}:${second}.${fraction.padEnd(7, '0')}Z` } as { [key in Name]: string };
}
