/**
 * The source of a copy: its URL, its conditions, and the request that authorizes reading it. The credential of the source decides, not the
 * caller of the copy.
 */
import { networkInterfaces } from 'node:os';
import type { Conditions } from '../rules/conditions.ts';
import { parseSnapshot } from '../services/blob/snapshots.ts';
import { parseIfTags } from '../services/blob/tags.ts';
import type { CopySource, SourceService } from '../services/common/copy-sources.ts';
import { StorageError } from '../services/common/errors.ts';
import { parseShareSnapshot } from '../services/file/snapshot-rows.ts';
import { parseBlobPath, type SizeLimits, sizeLimitOf } from './blob/params.ts';
import { parseFilePath } from './file/params.ts';
import { notImplemented, type Operation, type Reader, type Request } from './operation.ts';
import { parseWebUrl } from './outgoing/origins.ts';
import { booleanHeader, conditions, invalidHeader, reader, singleHeader } from './params.ts';
import { type Address, type ParsePath, parseAddress, parseQuery } from './request.ts';

const HEADER = 'x-ms-copy-source';
const SOURCE = /^https?:\/\/([^/?#]+)\/[^#]*$/i;
const LOOPBACK = /^(?:(?:[\w-]+\.)*localhost|127\.0\.0\.1|\[::1\])$/i;

/** A copy source on this server. */
export type CopySourceAddress = Address & { readonly url: string; readonly service: SourceService };

const PATHS: Readonly<Record<SourceService, ParsePath>> = { blob: parseBlobPath, file: parseFilePath };

/** A copy source on another server that copies may read from. */
export interface RemoteAddress {
  readonly url: string;
  readonly isRemote: true;
}

/** Whether the owner of an account reads a source in it without a credential of the source's own: Copy Blob only. */
export type CopySourceReads = 'as owner' | 'by its credential';

/** What tells this server from others. */
export interface OwnNames {
  /** Of the request. */
  readonly service: SourceService;
  /** The service of this server that listens on a port. */
  serviceAt(port: string): SourceService | undefined;
  isAccount(name: string): boolean;
  /** Host names of this server, in lower case. */
  readonly hostNames: readonly string[];
  /** Origins of other servers that copies may read from. */
  readonly copyOrigins: ReadonlySet<string>;
}

/** A host whose first label is an account of this server is this server, too, unless its origin is named as that of another one. */
export function parseCopySource(request: Request, names: OwnNames): CopySourceAddress | RemoteAddress {
  const url = String(request.headers[HEADER] ?? '');
  const host = SOURCE.exec(url)?.[1];
  const parsed = parseWebUrl(url);
  if (host === undefined || host.includes('@')) throw invalidHeader(HEADER, url);
  const ownHost = String(request.headers.host);
  const isOwn = isOwnHost(host, ownHost, names);
  if (!isOwn && parsed && names.copyOrigins.has(parsed.origin)) return { url, isRemote: true };
  // The host is parsed as in requests: the host of this request as it was there, others unless only paths name accounts.
  const isOwnInPath = host.toLowerCase() === ownHost.toLowerCase() && request.base !== '';
  const readAsHost = isOwnInPath || !request.readsHosts ? undefined : host;
  const service = serviceOf(host, ownHost, names);
  const address = parseAddress(url, readAsHost, names.isAccount, PATHS[service]);
  if (address.base !== '' && !isOwn) throw parsed ? unnamedOrigin(parsed.origin) : invalidHeader(HEADER, url);
  if (address.container === '' || address.item === '') throw invalidHeader(HEADER, url);
  return { ...address, url, service };
}

function unnamedOrigin(origin: string): StorageError {
  const message = `This server does not copy from another server unless it is started with --copy-from ${origin}.`;
  return new StorageError('CannotVerifyCopySource', 403, message);
}

/** The second part of a host in Azure's form tells, else the port. */
function serviceOf(host: string, ownHost: string, { service, serviceAt }: OwnNames): SourceService {
  const named = /^[^.:]+\.(blob|file)\./i.exec(host)?.[1]?.toLowerCase();
  if (named !== undefined) return named as SourceService;
  const [, port] = splitPort(host);
  return (port === splitPort(ownHost)[1] ? service : serviceAt(port)) ?? service;
}

function isOwnHost(host: string, ownHost: string, { hostNames, serviceAt }: OwnNames): boolean {
  const [name, port] = splitPort(host);
  const [ownName, ownPort] = splitPort(ownHost);
  if (port !== ownPort && serviceAt(port) === undefined) return false;
  return normalizeName(name) === normalizeName(ownName) || hostNames.includes(name) || isOwnAddress(name, hostNames);
}

/** Every address of the machine, if the server listens on all of them. */
function isOwnAddress(name: string, hostNames: readonly string[]): boolean {
  if (!hostNames.includes('0.0.0.0') && !hostNames.includes('::')) return false;
  const numeric = name.replace(/^\[(.*)\]$/, '$1');
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === numeric));
}

/** All names of the loopback interface are the same host. */
function normalizeName(name: string): string {
  return LOOPBACK.test(name) ? 'localhost' : name;
}

function splitPort(host: string): [name: string, port: string] {
  const [, name = '', port = ''] = /^(.*?)(?::(\d*))?$/.exec(host.toLowerCase()) ?? [];
  return [name, port];
}

const sourceTrailingDots = booleanHeader('x-ms-source-allow-trailing-dot');

export const copySource = (reads: CopySourceReads): Reader<CopySource> =>
  reader((request) => {
    const source = request.copySource!;
    if (!('isRemote' in source)) return { ...localSource(source), keepsTrailingDots: sourceTrailingDots.read(request) };
    const { url } = source;
    const authorization = reads === 'by its credential' ? sourceAuthorization(request) : undefined;
    return { url: withoutSignature(url), remote: { url, authorization, version: request.version } };
  });

function localSource({ url, service, container, item, rawQuery }: CopySourceAddress): CopySource {
  const query = parseQuery(rawQuery);
  if (query.versionid !== undefined)
    throw notImplemented('Copying from a versionid is not implemented by this server yet.');
  const snapshot =
    service === 'file'
      ? query.sharesnapshot && parseShareSnapshot(query.sharesnapshot)
      : query.snapshot && parseSnapshot(query.snapshot);
  return { url: withoutSignature(url), service, container, item, snapshot: snapshot || undefined };
}

/** The query of a signed URL, of Azure or another service, is as secret as a key; of it only the snapshot is left. */
function withoutSignature(url: string): string {
  const question = url.indexOf('?');
  if (question < 0) return url;
  // One part at a time: over the whole query the expression would take the square of its length.
  const parts = url.slice(question + 1).split('&');
  if (!parts.some((part) => /^[^=]*sig(?:nature)?=/i.test(part))) return url;
  const snapshot = parts.find((part) => /^(?:share)?snapshot=/i.test(part));
  return `${url.slice(0, question)}${snapshot === undefined ? '' : `?${snapshot}`}`;
}

/** As sent. */
export const sourceRange: Reader<string | undefined> = reader((request) => singleHeader(request, 'x-ms-source-range'));

/** The limit of the version, in bytes. */
export const sourceBytesMax = (limits: SizeLimits): Reader<number> =>
  reader(({ version }) => sizeLimitOf(limits, version));

/** x-ms-source-if-match and the like. */
export const sourceConditions: Reader<Conditions> = reader((request) => {
  const { headers } = request;
  const sourceHeaders: Request['headers'] = {
    'if-match': headers['x-ms-source-if-match'],
    'if-none-match': headers['x-ms-source-if-none-match'],
    'if-modified-since': singleHeader(request, 'x-ms-source-if-modified-since'),
    'if-unmodified-since': singleHeader(request, 'x-ms-source-if-unmodified-since'),
  };
  return conditions.read({ ...request, headers: sourceHeaders });
});

const SOURCE_IF_TAGS = 'x-ms-source-if-tags';

/** With x-ms-source-if-tags, of a source whose tags this server has. */
export const sourceTagConditions: Reader<Conditions> = reader((request) => {
  const found = sourceConditions.read(request);
  const text = singleHeader(request, SOURCE_IF_TAGS);
  if (text === undefined) return found;
  if ('isRemote' in request.copySource!) throw tagsElsewhere(SOURCE_IF_TAGS);
  return { ...found, ifTags: parseIfTags(text, SOURCE_IF_TAGS) };
});

const TAG_OPTION = 'x-ms-copy-source-tag-option';

/** Whether the tags of the source are copied. By default those of the request replace them. */
export const copiesTags: Reader<boolean> = reader((request) => {
  const value = singleHeader(request, TAG_OPTION)?.toUpperCase() ?? 'REPLACE';
  if (value === 'REPLACE') return false;
  if (value !== 'COPY') throw invalidHeader(TAG_OPTION, value);
  if (request.headers['x-ms-tags'] !== undefined) throw invalidHeader(TAG_OPTION, value);
  if ('isRemote' in request.copySource!) throw tagsElsewhere(TAG_OPTION);
  return true;
});

function tagsElsewhere(name: string): StorageError {
  return notImplemented(`The request header ${name} is not implemented for a source on another server.`, {
    HeaderName: name,
  });
}

/** A synchronous copy is another operation. */
export const requireAsyncCopy: Reader<void> = reader(({ headers }) => {
  const value = headers['x-ms-requires-sync'];
  if (value !== undefined && String(value).toLowerCase() !== 'false') {
    throw invalidHeader('x-ms-requires-sync', String(value));
  }
});

export const requireAbortAction: Reader<void> = reader(({ headers }) => {
  const value = String(headers['x-ms-copy-action'] ?? '');
  if (value.toLowerCase() !== 'abort') throw invalidHeader('x-ms-copy-action', value);
});

/** The read of the source as a request that can be authenticated and authorized. */
export function copySourceRequest(
  request: Request,
  source: CopySourceAddress,
  { readsCopySource, unsupported }: Pick<Operation<never>, 'readsCopySource' | 'unsupported'>,
): Request {
  const { rawPath, rawQuery, account, base, container, item, secondary } = source;
  const { id, readsHosts, secure, version } = request;
  const query = parseQuery(rawQuery);
  const authorization = readsCopySource === 'by its credential' ? sourceAuthorization(request) : undefined;
  const readsTags = [SOURCE_IF_TAGS, TAG_OPTION].some(
    (name) => request.headers[name] !== undefined && !unsupported.includes(name),
  );
  // A read that depends on tags requires the right to them.
  const intent = request.headers['x-ms-file-request-intent'];
  const headers = {
    ...(authorization !== undefined && { authorization }),
    ...(readsTags && { 'x-ms-if-tags': '' }),
    ...(intent !== undefined && { 'x-ms-file-request-intent': intent }),
  };
  return {
    ...{ id, account, base, readsHosts, secure, version, rawPath, rawQuery, query, container, item, secondary },
    ...{ method: 'GET', headers, rawHeaders: [] },
  };
}

/** Azure takes a bearer token only: a signature of the account's key belongs to one request. */
function sourceAuthorization(request: Request): string | undefined {
  const name = 'x-ms-copy-source-authorization';
  const value = singleHeader(request, name);
  if (value !== undefined && !/^bearer /i.test(value)) throw invalidHeader(name, value.replace(/ .*/s, ' ...'));
  return value;
}
