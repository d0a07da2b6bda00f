/** Paths of the Blob service (/container/blob), and readers of its headers that are supported in part. */
import type { Conditions } from '../../rules/conditions.ts';
import type { DeleteSnapshots } from '../../rules/snapshots.ts';
import type { BlockListType } from '../../services/blob/blocks.ts';
import type { PublicAccess } from '../../services/blob/rows.ts';
import { parseSnapshot } from '../../services/blob/snapshots.ts';
import { parseIfTags } from '../../services/blob/tags.ts';
import type { Reader, Request } from '../operation.ts';
import {
  bodyTooLarge,
  dateConditions,
  header,
  conditions as httpConditions,
  invalidHeader,
  invalidQuery,
  pathPart,
  reader,
  rejectConditions,
  singleHeader,
} from '../params.ts';
import { decodePart, type ParsePath } from '../request.ts';
import { sentLength } from '../structured-body/headers.ts';

export { requiredQuery } from '../params.ts';

/** By default a container is private. */
export const publicAccess: Reader<PublicAccess | undefined> = reader((request) => {
  const value = lowerCaseHeader(request, 'x-ms-blob-public-access');
  if (value === undefined || value === '') return undefined;
  if (value !== 'container' && value !== 'blob') throw invalidHeader('x-ms-blob-public-access', value);
  return value;
});

export const deleteSnapshots: Reader<DeleteSnapshots> = reader((request) => {
  const value = lowerCaseHeader(request, 'x-ms-delete-snapshots');
  if (value === undefined || value === 'include' || value === 'only') return value;
  throw invalidHeader('x-ms-delete-snapshots', value);
});

/** For operations that a snapshot has, too. */
export const snapshot: Reader<bigint | undefined> = reader(({ query }) => {
  return query.snapshot === undefined ? undefined : parseSnapshot(query.snapshot);
});

/** The snapshot with which Get Page Ranges compares: by its time, or by its URL, which is for disks that Azure manages. */
export const previousSnapshot: Reader<bigint | undefined> = reader((request) => {
  const { prevsnapshot } = request.query;
  const url = request.headers['x-ms-previous-snapshot-url'];
  if (url === undefined) return prevsnapshot === undefined ? undefined : parseSnapshot(prevsnapshot);
  const sent = URL.canParse(String(url)) ? new URL(String(url)) : undefined;
  const snapshotTime = sent?.searchParams.get('snapshot');
  const ownPath = `/${pathPart(0).read(request)}/${pathPart(1).read(request)}`;
  if (!sent || !snapshotTime || prevsnapshot !== undefined || !decodePart(sent.pathname).endsWith(ownPath))
    throw invalidHeader('x-ms-previous-snapshot-url', String(url));
  return parseSnapshot(snapshotTime);
});

/** For operations that write: a snapshot never changes. */
export const rejectSnapshot: Reader<void> = reader(({ query }) => {
  if (query.snapshot !== undefined) throw invalidQuery('snapshot', query.snapshot, 'A snapshot cannot be changed.');
});

export const permanentDelete: Reader<boolean> = reader(({ query }) => {
  const { deletetype } = query;
  if (deletetype !== undefined && deletetype.toLowerCase() !== 'permanent')
    throw invalidQuery('deletetype', deletetype);
  return deletetype !== undefined;
});

export const showOnlyDeleted: Reader<boolean> = reader(({ query }) => {
  const { showonly } = query;
  if (showonly !== undefined && showonly.toLowerCase() !== 'deleted') throw invalidQuery('showonly', showonly);
  return showonly !== undefined;
});

/** x-ms-access-tier-if-modified-since and its counterpart; undefined: neither was sent. */
export const tierConditions: Reader<Conditions | undefined> = reader((request) => {
  const since = singleHeader(request, 'x-ms-access-tier-if-modified-since');
  const until = singleHeader(request, 'x-ms-access-tier-if-unmodified-since');
  if (since === undefined && until === undefined) return undefined;
  return dateConditions.read({ ...request, headers: { 'if-modified-since': since, 'if-unmodified-since': until } });
});

const MIB = 1 << 20;

/** The maximal length of a body, by the first version with that limit, newest first. */
export type SizeLimits = readonly (readonly [version: string, bytes: number])[];

export const PUT_BLOB_SIZES: SizeLimits = [
  ['2019-12-12', 5000 * MIB],
  ['2016-05-31', 256 * MIB],
  ['', 64 * MIB],
];
export const PUT_BLOCK_SIZES: SizeLimits = [
  ['2019-12-12', 4000 * MIB],
  ['2016-05-31', 100 * MIB],
  ['', 4 * MIB],
];

export const APPEND_BLOCK_SIZES: SizeLimits = [
  ['2022-11-02', 100 * MIB],
  ['', 4 * MIB],
];

/** Copy Blob From URL has had one limit in all versions. */
export const COPY_FROM_URL_SIZES: SizeLimits = [['', 256 * MIB]];

/** A request without a version gets the newest limit. */
export function sizeLimitOf(limits: SizeLimits, version: string): number {
  const found = version === '' ? limits[0] : limits.find(([since]) => version >= since);
  return found![1];
}

export function sizeLimit(limits: SizeLimits): Reader<void> {
  return reader((request) => {
    const bytesMax = sizeLimitOf(limits, request.version);
    if (sentLength(request) > bytesMax) throw bodyTooLarge(bytesMax);
  });
}

/** Append blobs have no tiers. */
export const noTier: Reader<void> = reader(({ headers }) => {
  const tier = headers['x-ms-access-tier'];
  if (tier !== undefined) throw invalidHeader('x-ms-access-tier', String(tier));
});

/** From this version on the reply has a CRC64, which costs less than an MD5, where the request has no checksum. */
export const beforeCrc64: Reader<boolean> = reader(({ version }) => version !== '' && version < '2019-02-02');

const ifTags = header('x-ms-if-tags');

/** Those of HTTP, and x-ms-if-tags. */
export const conditions: Reader<Conditions> = reader((request) => {
  const text = ifTags.read(request);
  const found = httpConditions.read(request);
  return text === undefined ? found : { ...found, ifTags: parseIfTags(text) };
});

/** For operations that honour x-ms-if-tags alone. */
export const tagConditions: Reader<Conditions> = reader((request) => {
  rejectConditions.read(request);
  const text = ifTags.read(request);
  return text === undefined ? {} : { ifTags: parseIfTags(text) };
});

const BLOCK_LIST_TYPES: readonly BlockListType[] = ['committed', 'uncommitted', 'all'];

export const blockListType: Reader<BlockListType> = reader(({ query }) => {
  const text = query.blocklisttype ?? 'committed';
  const found = BLOCK_LIST_TYPES.find((type) => type === text.toLowerCase());
  if (found === undefined) throw invalidQuery('blocklisttype', text);
  return found;
});

function lowerCaseHeader({ headers }: Request, name: string): string | undefined {
  const value = headers[name];
  return value === undefined ? undefined : String(value).toLowerCase();
}

/** The name of a blob may contain slashes. */
export const parseBlobPath: ParsePath = (rest) => {
  if (rest === '') return { container: '', item: '', shape: '/' };
  const second = rest.indexOf('/', 1);
  const container = decodePart(second < 0 ? rest.slice(1) : rest.slice(1, second));
  const item = second < 0 ? '' : normalizeSlashes(decodePart(rest.slice(second + 1)));
  const shape = item !== '' ? '/{container}/{blob}' : container !== '' ? '/{container}' : '/';
  return { container, item, shape };
};

/** Azure treats a backslash in the name of a blob as a slash, and SDKs sign and list it so. */
export function normalizeSlashes(name: string): string {
  return name.includes('\\') ? name.replaceAll('\\', '/') : name;
}

/** Headers of features that are not implemented. Azure accepts x-ms-encryption-algorithm without a key. */
export const ENCRYPTION = ['x-ms-encryption-key', 'x-ms-encryption-key-sha256', 'x-ms-encryption-scope'];
export const IMMUTABILITY = ['x-ms-immutability-policy-until-date', 'x-ms-immutability-policy-mode', 'x-ms-legal-hold'];
export const VERSION_PARAMS = ['?versionid'];
