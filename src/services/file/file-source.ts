/** Files as sources of copies, within this service and for others. */
import { nextInPlaceSlice } from '../../rules/copy-slices.ts';
import type { SourcePlace, SourceReader } from '../common/copy-sources.ts';
import { readFileMap } from './file-content.ts';
import { checkPath, type PathInput, pathQueueKey, resolveFile } from './namespace.ts';

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
    const { share, node: file } = await resolveFile(at, scope, source.container, checkPath(pathInput(source)));
    const readMap = () => readFileMap(at, { account, content }, share, file);
    return {
      ...file,
      tags: [],
      async open(_read, range, plan) {
        return { isPlanned: await plan(at, await readMap(), undefined, range) };
      },
      async slice(read, offset) {
        const end = nextInPlaceSlice(offset, file.length);
        await read.planRanges(at, account, await readMap(), undefined, offset, end);
        return { segments: [{ length: end - offset }] };
      },
    };
  },
};
