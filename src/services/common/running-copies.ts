/** Running copies as rows: each names its source, the content that it builds, and the process that runs it. */
import { type ContentId, formatId, parseId } from '../../content/rows.ts';
import type { Row } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import type { SourceService } from './copy-sources.ts';
import { isRemote, type LocalCopySource, type RemoteCopySource } from './slice-sources.ts';

export interface RunningCopy {
  readonly id: string;
  readonly source: LocalCopySource | RemoteCopySource;
  /**
   * It grows with the copy. No content row exists before the end, so this row is what names the pages. With `inPlace` it is the content of the
   * blob.
   */
  readonly content: ContentId;
  /** The copy is an append or page blob. */
  readonly inPlace?: InPlaceCopy | undefined;
  /** The epoch of the process that runs it. Once the epoch is gone, another process takes the copy over. */
  readonly owner: bigint;
  readonly started: bigint;
  /** The Content-MD5 that the copy gets with its bytes. */
  readonly md5: string | undefined;
}

/** The copy writes into the content of its blob, which shows none of it before the end. */
export interface InPlaceCopy {
  /** What the append blob has in the end. */
  readonly append?: { readonly blocks: number; readonly isSealed?: true | undefined } | undefined;
  readonly incremental?: IncrementalCopy | undefined;
}

/** Incremental Copy Blob: the end is a snapshot of the copy. */
export interface IncrementalCopy {
  /** Of the source. */
  readonly snapshot: bigint;
  /** The one that was copied before; undefined: everything is copied. */
  readonly since?: bigint | undefined;
}

export function encodeRunningCopy({ source, content, owner, started, inPlace, ...copy }: RunningCopy): Buffer {
  return encodeValue({
    ...copy,
    source: isRemote(source)
      ? { ...source, modified: source.modified?.toString() }
      : {
          ...storedPlace(source),
          account: source.account.toString(),
          grantedContainer: source.grantedContainer?.toString(),
          snapshot: source.snapshot?.toString(),
        },
    content: formatId(content),
    inPlace: inPlace && { append: inPlace.append, incremental: formatIncremental(inPlace.incremental) },
    owner: owner.toString(),
    started: started.toString(),
  });
}

export function decodeRunningCopy(row: Row): RunningCopy {
  const { id, md5, source, content, inPlace, owner, started } = decodeValue<StoredRunningCopy>(row);
  return {
    id,
    md5,
    source:
      'url' in source
        ? { url: source.url, etag: source.etag, modified: parseOptional(source.modified) }
        : {
            ...placeFrom(source),
            account: BigInt(source.account),
            grantedContainer: parseOptional(source.grantedContainer),
            snapshot: parseOptional(source.snapshot),
          },
    content: parseId(content),
    inPlace: inPlace && { append: inPlace.append, incremental: parseIncremental(inPlace.incremental) },
    owner: BigInt(owner),
    started: BigInt(started),
  };
}

/** JSON has no bigint. */
type StoredRunningCopy = Pick<RunningCopy, 'id' | 'md5'> & {
  source: { url: string; etag?: string; modified?: string } | StoredLocalSource;
  content: string;
  inPlace?: { append?: { blocks: number; isSealed?: true }; incremental?: StoredIncremental };
  owner: string;
  started: string;
};

type StoredIncremental = { snapshot: string; since?: string };

const formatIncremental = (copy: IncrementalCopy | undefined) =>
  copy && { snapshot: copy.snapshot.toString(), since: copy.since?.toString() };
const parseIncremental = (stored: StoredIncremental | undefined): IncrementalCopy | undefined =>
  stored && { snapshot: BigInt(stored.snapshot), since: parseOptional(stored.since) };
const parseOptional = (text: string | undefined): bigint | undefined => (text === undefined ? undefined : BigInt(text));

interface StoredLocalSource {
  account: string;
  container: string;
  grantedContainer?: string;
  /** The blob, or the path of the file. */
  blob: string;
  /** Undefined: the Blob service. */
  service?: SourceService;
  snapshot?: string;
  keepsTrailingDots?: boolean;
  etag: string;
}

function storedPlace({ item, service, ...source }: LocalCopySource) {
  return { ...source, blob: item, service: service === 'blob' ? undefined : service };
}

function placeFrom({ blob: item, service = 'blob', container, keepsTrailingDots, etag }: StoredLocalSource) {
  return { service, container, item, keepsTrailingDots, etag };
}
