/** Running copies as rows: each names its source, the content that it builds, and the process that runs it. */
import { type ContentId, formatId, parseId } from '../../content/rows.ts';
import type { Row } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import type { SourceService } from './copy-sources.ts';
import { isRemote, type LocalCopySource, type RemoteCopySource } from './slice-sources.ts';

export interface RunningCopy {
  readonly id: string;
  readonly source: LocalCopySource | RemoteCopySource;
  /** It grows with the copy. No content row exists before the end, so this row is what names the pages. */
  readonly content: ContentId;
  /** The epoch of the process that runs it. Once the epoch is gone, another process takes the copy over. */
  readonly owner: bigint;
  readonly started: bigint;
  /** The Content-MD5 that the copy gets with its bytes. */
  readonly md5: string | undefined;
}

export function encodeRunningCopy({ source, content, owner, started, ...copy }: RunningCopy): Buffer {
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
    owner: owner.toString(),
    started: started.toString(),
  });
}

export function decodeRunningCopy(row: Row): RunningCopy {
  const { id, md5, source, content, owner, started } = decodeValue<StoredRunningCopy>(row);
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
    owner: BigInt(owner),
    started: BigInt(started),
  };
}

/** JSON has no bigint. */
type StoredRunningCopy = Pick<RunningCopy, 'id' | 'md5'> & {
  source: { url: string; etag?: string; modified?: string } | StoredLocalSource;
  content: string;
  owner: string;
  started: string;
};

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
