/** Append and page blobs of other servers as sources of copies. */
import { APPENDS_MAX } from '../../rules/append.ts';
import { isPageBlobLength, SEQUENCE_NUMBER_MAX } from '../../rules/page.ts';
import { cannotVerify } from '../common/copy-sources.ts';
import type { RemoteHead } from '../common/remote-sources.ts';
import type { BlobRecord } from './rows.ts';

/** What a copy of an append or page blob is, besides its bytes; the source may be of any kind, and is not trusted. */
export function readBlobState(head: RemoteHead): Pick<BlobRecord, 'append' | 'page'> {
  const { blobType, blocks = 0, isSealed, sequenceNumber = 0n, length } = head;
  if (blobType === 'AppendBlob') {
    if (blocks > APPENDS_MAX) throw cannotVerify();
    return { append: { blocks, ...(isSealed && { isSealed }) } };
  }
  if (blobType !== 'PageBlob') return {};
  if (!isPageBlobLength(length) || sequenceNumber > SEQUENCE_NUMBER_MAX) throw cannotVerify();
  return { page: { sequenceNumber } };
}
