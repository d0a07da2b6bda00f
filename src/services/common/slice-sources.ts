/** The source of a running copy, read slice by slice. That it has not changed since the copy began is verified with every slice. */
import type { ContentRead, ContentStore } from '../../content/content.ts';
import type { Partition, Snapshot } from '../../partition/partition.ts';
import { type BlobSegment, SLICE_BYTES } from '../../rules/copy-slices.ts';
import { readerOf, type SourceService } from './copy-sources.ts';
import { commonErrors, errorFactory, StorageError } from './errors.ts';
import type { RemoteHead, RemoteRead, RemoteSources } from './remote-sources.ts';
import type { AccountId, Storage } from './storage.ts';

const fail = errorFactory(commonErrors);

export interface SourceSlice {
  readonly segments: readonly BlobSegment[];
  bytes(): AsyncIterable<Uint8Array>;
}

/** Its functions fail with a StorageError if the source cannot be read any more. */
export interface SliceSource {
  /** The bytes from this offset on; it is that of the slice before and its length. */
  next(offset: number): Promise<SourceSlice>;
  close(): void;
}

export interface SourceContext {
  readonly partition: Partition;
  readonly content: ContentStore;
  readonly remote: RemoteSources | undefined;
  readonly sources: Storage['sources'];
}

/** A blob or file of this server, whose state is known by its ETag. */
export interface LocalCopySource {
  readonly account: AccountId;
  readonly service: SourceService;
  readonly container: string;
  /** The container whose access settings authorized the read: another one of the same name does not. */
  readonly grantedContainer: bigint | undefined;
  readonly item: string;
  /** Of a blob; undefined: the base blob. */
  readonly snapshot?: bigint | undefined;
  /** Of a file. */
  readonly keepsTrailingDots?: boolean | undefined;
  readonly etag: string;
}

export interface RemoteCopySource {
  /** With its signature, which the copy does not show. */
  readonly url: string;
  readonly etag: string | undefined;
  readonly modified: bigint | undefined;
}

export const isRemote = (source: LocalCopySource | RemoteCopySource): source is RemoteCopySource => 'url' in source;

export function openSlices(
  context: SourceContext,
  source: LocalCopySource | RemoteCopySource,
  length: number,
  signal: AbortSignal,
): SliceSource {
  return isRemote(source)
    ? new RemoteSlices(context.remote, source, length, signal)
    : new LocalSlices(context, source, length);
}

/** A read of its own for each slice: the garbage collector waits for reads. */
class LocalSlices implements SliceSource {
  private readonly context: SourceContext;
  private readonly source: LocalCopySource;
  private readonly length: number;
  private read: ContentRead | undefined;

  constructor(context: SourceContext, source: LocalCopySource, length: number) {
    this.context = context;
    this.source = source;
    this.length = length;
  }

  async next(offset: number): Promise<SourceSlice> {
    this.close();
    const read = this.context.content.beginRead();
    this.read = read;
    return this.context.partition.read((at) => this.plan(at, read, offset));
  }

  close(): void {
    this.read?.end();
  }

  private async plan(at: Snapshot, read: ContentRead, offset: number): Promise<SourceSlice> {
    const { account, service, grantedContainer, etag } = this.source;
    const scope = { account, granted: { container: grantedContainer } };
    const found = await readerOf(this.context, service).find(at, this.context.content, scope, this.source);
    if (found.etag !== etag || found.length !== this.length) throw fail('ConditionNotMet');
    const { segments, inline } = await found.slice(read, offset);
    return { segments, bytes: () => (inline ? inOnePiece(inline) : copies(read.stream())) };
  }
}

/** One connection for all slices, while it lasts. */
class RemoteSlices implements SliceSource {
  private readonly remote: RemoteSources | undefined;
  private readonly source: RemoteCopySource;
  private readonly length: number;
  private readonly signal: AbortSignal;
  private opened: { readonly read: RemoteRead; readonly pieces: PieceReader } | undefined;

  constructor(remote: RemoteSources | undefined, source: RemoteCopySource, length: number, signal: AbortSignal) {
    this.remote = remote;
    this.source = source;
    this.length = length;
    this.signal = signal;
  }

  async next(offset: number): Promise<SourceSlice> {
    this.opened ??= await this.open(offset);
    const { pieces } = this.opened;
    const length = Math.min(SLICE_BYTES, this.length - offset);
    return { segments: [{ length }], bytes: () => pieces.take(length) };
  }

  close(): void {
    this.opened?.read.close();
  }

  private async open(offset: number) {
    const { url } = this.source;
    if (!this.remote) throw fail('AuthorizationFailure');
    const range = offset === 0 ? undefined : { from: offset };
    const read = await this.remote.open({ url, range, signal: this.signal });
    if (isOtherResource(this.source, this.length, read.head)) {
      read.close();
      throw fail('ConditionNotMet');
    }
    return { read, pieces: new PieceReader(read.bytes()) };
  }
}

export const isOtherResource = (source: RemoteCopySource, bytes: number, { etag, modified, length }: RemoteHead) =>
  length !== bytes || etag !== source.etag || modified !== source.modified;

/** Takes any number of bytes at a time from a stream of pieces. */
class PieceReader {
  private readonly pieces: AsyncIterator<Uint8Array>;
  /** The rest of a piece whose first bytes are taken. */
  private rest: Uint8Array | undefined;

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.pieces = bytes[Symbol.asyncIterator]();
  }

  async *take(length: number): AsyncGenerator<Uint8Array> {
    for (let missing = length; missing > 0; ) {
      const piece = this.rest ?? (await this.nextPiece());
      this.rest = piece.length > missing ? piece.subarray(missing) : undefined;
      const taken = piece.subarray(0, missing);
      missing -= taken.length;
      yield taken;
    }
  }

  private async nextPiece(): Promise<Uint8Array> {
    const { done, value } = await this.pieces.next();
    if (done) throw new StorageError('BadGateway', 502, 'The source ended before its last byte.');
    return value;
  }
}

async function* inOnePiece(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

/** An upload collects pieces, and a read uses the memory of a piece again when the next one is requested. */
export async function* copies(pieces: AsyncIterable<Buffer> | Iterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const piece of pieces) yield Buffer.from(piece);
}
