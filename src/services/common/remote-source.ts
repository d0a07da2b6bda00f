/** A resource of another server as the source of a copy: its properties and bytes as those of a blob or file. */
import { INLINE_WRITE_BYTES_MAX } from '../../content/ranges/range-maps.ts';
import { crc64Base64, md5Base64 } from '../../hashing/hasher.ts';
import { parseRange } from '../../rules/byte-ranges.ts';
import type { Validators } from '../../rules/conditions.ts';
import {
  cannotVerify,
  checkReadConditions,
  copySourceError,
  type FromUrlInput,
  type RemoteSource,
  type SourceProperties,
  sourceBounds,
  sourceTooLarge,
  type WantedContent,
} from './copy-sources.ts';
import { type Metadata, parseMetadata } from './names.ts';
import type { RemoteHead } from './remote-sources.ts';
import type { Storage } from './storage.ts';
import { checkHashes, type StagedContent, stageUpload, WHOLE_BYTES_MAX, withUpload } from './upload.ts';

interface OpenedRemote {
  readonly head: RemoteHead;
  readonly metadata: Metadata;
  readonly validators: Validators;
  bytes(): AsyncIterable<Uint8Array>;
  close(): void;
}

/** Its failures are those of a copy source. */
export async function openRemote(
  { remote }: Storage,
  { remote: request }: RemoteSource,
  range?: { readonly from: number; readonly to?: number | undefined },
): Promise<OpenedRemote> {
  if (!remote) throw cannotVerify();
  try {
    const { head, bytes, close } = await remote.open({ ...request, range });
    const validators = { etag: head.etag ?? '', modified: head.modified ?? 0n };
    return { head, metadata: parseMetadata(head.metadata), validators, bytes: () => reported(bytes()), close };
  } catch (error) {
    throw copySourceError(error);
  }
}

/** As `withSource`. What the source says of its length is not trusted: an upload fails unless as many bytes arrive. */
export async function withRemoteSource<T>(
  storage: Storage,
  input: FromUrlInput,
  source: RemoteSource,
  wanted: WantedContent,
  use: (staged: StagedContent, source: SourceProperties) => Promise<T>,
): Promise<T> {
  const { sourceRange, sourceHashes: expected } = input;
  const range = sourceRange === undefined ? undefined : parseRange(sourceRange);
  const { head, metadata, validators, bytes, close } = await openRemote(storage, source, range);
  try {
    const length = checkHead(head, validators, input);
    const properties = { content: head.content, metadata, tags: [] };
    const { mapOffset } = wanted;
    if (wanted.inline && length <= (mapOffset === undefined ? WHOLE_BYTES_MAX : INLINE_WRITE_BYTES_MAX)) {
      const inline = await readWhole(bytes());
      if (inline.length !== length) throw cannotVerify();
      const hashes = { md5: md5Base64(inline), crc64: crc64Base64(inline) };
      checkHashes(expected, hashes);
      return await use({ ...hashes, length, inline }, properties);
    }
    const md5 = expected.md5 !== undefined || wanted.md5(properties);
    return await withUpload(storage, { length, expected, bytes }, { md5, mapOffset }, (uploaded) =>
      use(stageUpload(storage, uploaded), properties),
    );
  } finally {
    close();
  }
}

/** The length of the bytes that are wanted. */
function checkHead(
  { length }: RemoteHead,
  validators: Validators,
  { sourceConditions, sourceRange, sourceBytesMax }: FromUrlInput,
): number {
  try {
    checkReadConditions(validators, sourceConditions);
    const { from, to } = sourceBounds(sourceRange, length);
    if (to - from > sourceBytesMax) throw sourceTooLarge(sourceBytesMax);
    return to - from;
  } catch (error) {
    throw copySourceError(error);
  }
}

async function* reported(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes;
  } catch (error) {
    throw copySourceError(error);
  }
}

/** Of a stream that is known to be short. */
export async function readWhole(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes) pieces.push(piece);
  return Buffer.concat(pieces);
}
