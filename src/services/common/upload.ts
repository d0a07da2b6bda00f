import type { UploadedContent } from '../../content/content.ts';
import { OutcomeUnknown } from '../../partition/partition.ts';
import { checkHashes, type SentContent } from './sent-content.ts';
import type { Storage } from './storage.ts';

/**
 * Takes the bytes, holds them against their checksums, and lets go of them behind `use`, whether it has named them or not. Where
 * nobody can say, they are held until the process ends: a row may name them.
 */
export async function withUpload<T>(
  { content, account }: Storage,
  sent: SentContent,
  wants: { readonly md5: boolean },
  fn: (uploaded: UploadedContent) => Promise<T>,
): Promise<T> {
  const uploaded = await content.upload(account, sent.bytes(), sent.length, {
    md5: wants.md5 || sent.expected.md5 !== undefined,
  });
  let isDecided = true;
  try {
    checkHashes(sent.expected, uploaded);
    return await fn(uploaded);
  } catch (error) {
    if (error instanceof OutcomeUnknown) isDecided = false;
    throw error;
  } finally {
    if (isDecided) uploaded.release();
  }
}
