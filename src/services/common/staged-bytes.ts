/** Bytes of a request for a content that changes in place: short ones stay in memory, others are uploaded before the transaction. */
import { INLINE_WRITE_BYTES_MAX, type RangeMap, type WrittenBytes } from '../../content/ranges/range-maps.ts';
import { crc64Base64, md5Base64 } from '../../hashing/hasher.ts';
import type { Transaction } from '../../partition/partition.ts';
import type { Storage } from './storage.ts';
import { checkHashes, type SentContent, stageUpload, withUpload } from './upload.ts';

/** Bytes that are to be written into a map. */
export type StagedBytes = WrittenBytes & { readonly reference?: ((tx: Transaction) => Promise<void>) | undefined };

/**
 * Calls `use` with the verified bytes. Returns what it has written, and the hashes of the bytes.
 * @param offset where they will probably be. If it is another place, a chunk has bytes of two map pages. Called for bytes that are uploaded.
 */
export async function withStagedBytes<T>(
  storage: Storage,
  { body, wantsMd5 }: { readonly body: SentContent; readonly wantsMd5: boolean },
  offset: () => Promise<number>,
  use: (bytes: StagedBytes) => Promise<T>,
): Promise<{ readonly written: T; readonly md5: string | undefined; readonly crc64: string }> {
  const { whole, expected } = body;
  if (whole && whole.length <= INLINE_WRITE_BYTES_MAX) {
    const md5 = wantsMd5 || expected.md5 !== undefined ? md5Base64(whole) : undefined;
    const crc64 = crc64Base64(whole);
    checkHashes(expected, { md5, crc64 });
    return { written: await use({ inline: whole }), md5, crc64 };
  }
  const wants = { md5: wantsMd5, mapOffset: await offset() };
  return withUpload(storage, body, wants, async (uploaded) => {
    const { md5, crc64 } = uploaded;
    return { written: await use(stageUpload(storage, uploaded)), md5, crc64 };
  });
}

export async function writeStaged(
  tx: Transaction,
  { account, content }: Storage,
  map: RangeMap,
  offset: number,
  bytes: StagedBytes,
): Promise<{ readonly needsSweep: boolean }> {
  await bytes.reference?.(tx);
  return content.ranges.write(tx, account, map, offset, bytes);
}
