/** Put Range From URL: the bytes of a blob or file, complete when the operation is answered. */
import { type FromUrlInput, withSource } from '../common/copy-sources.ts';
import { StorageError } from '../common/errors.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { checkPutRange, commitRange, precheckPutRange, type WriteRangeInput } from './ranges.ts';

export interface PutRangeFromUrlInput extends WriteRangeInput, FromUrlInput {
  /** Base64: the CRC64 that the bytes of the source must have, and must not have. */
  readonly crc64Conditions: { readonly ifMatch?: string | undefined; readonly ifNoneMatch?: string | undefined };
}

export async function putRangeFromUrl(storage: Storage, input: PutRangeFromUrlInput) {
  const write = checkPutRange(input);
  const { from, to } = write.range;
  const { ifMatch, ifNoneMatch } = input.crc64Conditions;
  // Whether the range is in the file is judged after the length of the source, as Azure does.
  await precheckPutRange(storage, input, { range: { from, to: from } });
  const wanted = { md5: () => false, inline: true, mapOffset: from };
  return withSource(storage, input, wanted, async (staged) => {
    const { crc64, length } = staged;
    if (length !== to - from) throw otherLength();
    if ((ifMatch !== undefined && ifMatch !== crc64) || ifNoneMatch === crc64) throw fail('ConditionNotMet');
    return { ...(await commitRange(storage, input, write, staged)), crc64 };
  });
}

function otherLength(): StorageError {
  const message = 'The source request body for copy source does not match requested length to write on target.';
  return new StorageError('CannotVerifyCopySource', 409, message);
}
