/** Files as sources of copies, within this service and for others. */
import { nextInPlaceSlice } from '../../rules/copy-slices.ts';
import type { SourcePlace, SourceReader } from '../common/copy-sources.ts';
import { planSeenContent, readSeenContent } from './file-content.ts';
import { checkPath, type PathInput, pathQueueKey, resolveFile } from './namespace.ts';
import { checkSharing } from './opens.ts';

export const pathInput = ({ container: share, item: path, keepsTrailingDots }: SourcePlace): PathInput => ({
  share,
  path,
  keepsTrailingDots,
});

export const fileSources: SourceReader = {
  check(source) {
    checkPath(pathInput(source));
  },
  queueKey(account, source) {
    const input = pathInput(source);
    return pathQueueKey({ account }, input, checkPath(input));
  },
  async find(at, content, scope, source) {
    const { account } = scope;
    const found = await resolveFile(at, scope, source.container, checkPath(pathInput(source)), source.snapshot);
    const { node: file } = found;
    const readContent = () => readSeenContent(at, { account, content }, found);
    await checkSharing(at, found, 'read');
    return {
      ...file,
      tags: [],
      async open(_read, range, plan) {
        return { isPlanned: await planSeenContent(at, plan, await readContent(), range) };
      },
      async slice(read, offset) {
        const end = nextInPlaceSlice(offset, file.length);
        const { map, gen, isCurrent } = await readContent();
        await read.planRanges(at, account, map, isCurrent ? undefined : gen, offset, end);
        return { segments: [{ length: end - offset }] };
      },
    };
  },
};
