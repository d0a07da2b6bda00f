import type { Taken } from '../content/content.ts';
import { checkHashes, type SentContent } from './sent-content.ts';
import type { Storage } from './storage.ts';

/** Takes the bytes, holds them against their checksums, and lets go of them behind `use`, whether it has named them or not. */
export async function withTaken<T>(
  { content, account }: Storage,
  sent: SentContent,
  wants: { readonly md5: boolean },
  use: (taken: Taken) => Promise<T>,
): Promise<T> {
  const taken = await content.take(account, sent.bytes(), sent.length, {
    md5: wants.md5 || sent.expected.md5 !== undefined,
  });
  try {
    checkHashes(sent.expected, taken);
    return await use(taken);
  } finally {
    taken.release();
  }
}
