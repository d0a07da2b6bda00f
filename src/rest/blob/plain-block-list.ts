/** Block lists as clients write them, in a tenth of the time that a parser takes. */
import type { BlockChoice, BlockSource } from '../../rules/block-list.ts';

const START =
  /^(?:<\?xml version=(?:'1\.0'|"1\.0")(?: encoding=(?:'[uU][tT][fF]-8'|"[uU][tT][fF]-8"))? ?\?>)?[ \t\r\n]*<BlockList>/;
const BLOCK = /([ \t\r\n]*)<(Latest|Uncommitted|Committed)>([A-Za-z0-9+/=]*)<\/\2>/y;
const END = /^[ \t\r\n]*<\/BlockList>[ \t\r\n]*$/;
/** Longer than any beginning, block or end of such a document. */
const UNREAD_MAX = 256;
const WRITTEN_AT_ONCE = 500;

export interface PlainBlockList {
  readonly blocks: BlockChoice[];
  /** False: here is something for the parser to judge. */
  write(bytes: Uint8Array): boolean;
  /** Whether the document was plain to its end. */
  end(): boolean;
  /** All that was written, byte for byte. */
  written(): Iterable<Buffer>;
}

export function plainBlockList(onBlock: (count: number) => void): PlainBlockList {
  const blocks: BlockChoice[] = [];
  let start: string | undefined;
  /** Before each block the same, so that what was read need not be kept. */
  let gap: string | undefined;
  let unread = '';

  function readBlocks(text: string, from: number): void {
    let read = from;
    BLOCK.lastIndex = from;
    for (let found = BLOCK.exec(text); found; found = BLOCK.exec(text)) {
      gap ??= found[1]!;
      if (found[1] !== gap) break;
      read = BLOCK.lastIndex;
      onBlock(blocks.push({ source: found[2] as BlockSource, id: found[3]! }));
    }
    unread = text.slice(read);
  }

  return {
    blocks,
    write(bytes) {
      // What is beyond ASCII is not plain, in any encoding.
      unread += Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
      if (start !== undefined) readBlocks(unread, 0);
      else {
        start = START.exec(unread.slice(0, UNREAD_MAX))?.[0];
        if (start !== undefined) readBlocks(unread, start.length);
      }
      return unread.length <= UNREAD_MAX;
    },
    end: () => start !== undefined && END.test(unread),
    *written() {
      yield Buffer.from(start ?? '', 'latin1');
      for (let from = 0; from < blocks.length; from += WRITTEN_AT_ONCE) {
        const slice = blocks.slice(from, from + WRITTEN_AT_ONCE);
        yield Buffer.from(slice.map(({ source, id }) => `${gap}<${source}>${id}</${source}>`).join(''), 'latin1');
      }
      yield Buffer.from(unread, 'latin1');
    },
  };
}
