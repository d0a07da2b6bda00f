/** Upload: the bytes of a request become durable, and their checksums are verified, before the transaction that references them. */
import type { ContentHashes, UploadedContent, WantedUpload } from '../../content/content.ts';
import type { ChunkRef } from '../../content/rows.ts';
import { crc64Base64, md5Base64 } from '../../hashing/hasher.ts';
import { OutcomeUnknown, type Transaction } from '../../partition/partition.ts';
import { commonErrors, errorFactory } from './errors.ts';
import type { Storage } from './storage.ts';

const fail = errorFactory(commonErrors);

/** Base64, in the one form that a calculated hash has. */
export interface Hashes {
  readonly md5?: string | undefined;
  readonly crc64?: string | undefined;
}

export interface SentContent {
  /** Exactly this many bytes arrive, or the stream fails. */
  readonly length: number;
  /** The checksums that the request states. The reader of the bytes verifies them: `checkHashes`. */
  readonly expected: Hashes;
  /** All bytes, if there are at most WHOLE_BYTES_MAX. */
  readonly whole?: Buffer;
  /** All bytes as they arrive, with back-pressure on the client. To be called once. */
  bytes(): AsyncIterable<Uint8Array>;
}

/** Up to this length a content is read into memory before its operation begins. Put Blob stores it in a row, not in an extent. */
export const WHOLE_BYTES_MAX = 16 * 1024;

/** Every hash that is expected must have been calculated. */
export function checkHashes(expected: Hashes, found: Hashes): void {
  const { md5, crc64 } = expected;
  if (md5 !== undefined && md5 !== found.md5) {
    throw fail('Md5Mismatch', { UserSpecifiedMd5: md5, ServerCalculatedMd5: String(found.md5) });
  }
  if (crc64 !== undefined && crc64 !== found.crc64) {
    throw fail('Crc64Mismatch', { UserSpecifiedCrc64: crc64, ServerCalculatedCrc64: String(found.crc64) });
  }
}

/**
 * Uploads and verifies the bytes, and releases them after `fn`, whether a commit references them or not. After a commit of
 * unknown outcome they stay pinned until the process ends: a row may reference them.
 */
export async function withUpload<T>(
  { content, account }: Pick<Storage, 'content' | 'account'>,
  sent: SentContent,
  wants: WantedUpload,
  fn: (uploaded: UploadedContent) => Promise<T>,
): Promise<T> {
  const uploaded = await content.upload(account, sent.bytes(), sent.length, {
    ...wants,
    md5: wants.md5 || sent.expected.md5 !== undefined,
  });
  let isOutcomeKnown = true;
  try {
    checkHashes(sent.expected, uploaded);
    return await fn(uploaded);
  } catch (error) {
    if (error instanceof OutcomeUnknown) isOutcomeKnown = false;
    throw error;
  } finally {
    if (isOutcomeKnown) uploaded.release();
  }
}

/** Bytes that a transaction can name: they go into a row, or they are in chunks. */
export type StagedContent = ContentHashes & { readonly length: number } & (StagedInline | StagedChunks);

interface StagedInline {
  readonly inline: Buffer;
  readonly reference?: undefined;
}

interface StagedChunks {
  readonly inline?: undefined;
  readonly chunkRefs: readonly ChunkRef[];
  /** Counts the references to the chunks. */
  reference(tx: Transaction): Promise<void>;
}

export function stageUpload(
  { content, account }: Storage,
  uploaded: UploadedContent,
): StagedContent & { readonly inline?: undefined } {
  const { length, md5, crc64, chunkRefs } = uploaded;
  return { length, md5, crc64, chunkRefs, reference: (tx) => content.commitUpload(tx, account, uploaded) };
}

/** `withUpload` with an MD5, except that a content that is in memory already stays there. */
export async function withInlineOrUpload<T>(
  storage: Storage,
  sent: SentContent,
  fn: (staged: StagedContent) => Promise<T>,
): Promise<T> {
  const { whole: inline } = sent;
  if (!inline) return withUpload(storage, sent, { md5: true }, (uploaded) => fn(stageUpload(storage, uploaded)));
  const staged = { md5: md5Base64(inline), crc64: crc64Base64(inline), length: inline.length, inline };
  checkHashes(sent.expected, staged);
  return await fn(staged);
}
