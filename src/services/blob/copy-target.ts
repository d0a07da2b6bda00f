/** Blobs as targets of running copies. */
import type { ContentStore } from '../../content/content.ts';
import { decodeKey } from '../../partition/keys.ts';
import type { CopyTarget, CopyTargets } from '../common/copy-target.ts';
import { copyBlocks } from './copy-blocks.ts';
import { copyRanges } from './copy-ranges.ts';
import { type Blob, propertiesKey, runningCopiesIn } from './rows.ts';
import { type CopyPlace, endWithoutBytes, keyOfCopy, placeOfCopy, putProgress, readCopied } from './running-copies.ts';

export const blobCopies: CopyTargets = {
  rowsIn: (account) => runningCopiesIn(account),
  open: (content, key) => (decodeKey(key)[1] === 'r' ? blobTarget(content, placeOfCopy(key)) : undefined),
};

function blobTarget(content: ContentStore, place: CopyPlace): CopyTarget<Blob> {
  const { account, container } = place;
  return {
    key: keyOfCopy(place),
    async read(at) {
      // Of a deleted container the properties are gone at once, the blobs later.
      const properties = await at.get(propertiesKey(account, container));
      return properties && readCopied(at, place);
    },
    putState: (tx, found, copy) => putProgress(tx, place, found, copy),
    copy: (run, copy, state) => (copy.inPlace ? copyRanges : copyBlocks)(run, place, copy, state),
    end: (tx, copy, found, state) => endWithoutBytes(tx, content, place, copy, found, state),
  };
}
