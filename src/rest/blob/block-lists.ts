/** Block lists: XML to and from blocks. A request may have 50,000 entries, a reply 150,000, so both are processed in slices. */

import { BLOCK_LIST_TEXT_MAX } from '../../base/input-limits.ts';
import { nextSlice } from '../../base/time-slices.ts';
import { createXmlReader, escapeXml, SLICE_BYTES, type XmlElement, XmlError } from '../../base/xml.ts';
import { createHasher, type Hashes } from '../../hashing/hasher.ts';
import type { BlockChoice, BlockSource } from '../../rules/block-list.ts';
import { checkBlockCount } from '../../services/blob/block-lists.ts';
import type { BlockLists, ListedBlock } from '../../services/blob/blocks.ts';
import { checkHashes, type SentContent } from '../../services/common/upload.ts';
import { invalidXml } from '../params.ts';
import { type BlockListScanner, createBlockListScanner } from './block-list-scanner.ts';

/** 50,000 of the longest ids, with room for line breaks. */
export const BLOCK_LIST_BYTES_MAX = 8 << 20;

/** After this many bytes the reader yields to the event loop: at once for a large piece, from time to time for small pieces. */
const BYTES_PER_TICK_MAX = 4 << 10;

const SOURCES: ReadonlySet<string> = new Set<BlockSource>(['Committed', 'Uncommitted', 'Latest']);

/** Also returns the checksums of the document, which the reply contains. */
export async function readBlockList(
  sent: SentContent,
  wanted: { md5: boolean },
): Promise<{ blocks: BlockChoice[]; hashes: Hashes }> {
  const hash = createHasher({ md5: wanted.md5 || sent.expected.md5 !== undefined });
  const scanner = createBlockListScanner(checkBlockCount);
  let parser: BlockListParser | undefined;
  let bytesSinceYield = 0;
  for await (const bytes of sent.bytes()) {
    for (let from = 0; from < bytes.length; from += SLICE_BYTES) {
      const slice = bytes.subarray(from, from + SLICE_BYTES);
      bytesSinceYield += slice.length;
      if (bytesSinceYield > BYTES_PER_TICK_MAX) {
        bytesSinceYield = slice.length;
        await nextSlice();
      }
      hash.update(slice);
      if (parser) parser.write(slice);
      else if (!scanner.write(slice)) parser = await resumeWithParser(scanner);
    }
  }
  if (!scanner.end()) parser ??= await resumeWithParser(scanner);
  const blocks = parser?.end() ?? scanner.blocks;
  const hashes = hash.digest();
  checkHashes(sent.expected, hashes);
  return { blocks, hashes };
}

interface BlockListParser {
  write(bytes: Uint8Array): void;
  end(): BlockChoice[];
}

/** Replays what the scanner has read into an XML parser, which then continues. */
async function resumeWithParser(scanner: BlockListScanner): Promise<BlockListParser> {
  const blocks: BlockChoice[] = [];
  const reader = createXmlReader((child) => checkBlockCount(blocks.push(parseBlockChoice(child))), BLOCK_LIST_TEXT_MAX);
  const parser: BlockListParser = {
    write: (bytes) => withXmlErrors(() => reader.write(bytes)),
    end: () =>
      withXmlErrors(() => {
        const { name, line, column } = reader.end();
        if (name !== 'BlockList') throw new XmlError(`The root element is ${name}, not BlockList.`, line, column);
        return blocks;
      }),
  };
  for (const bytes of scanner.replay()) {
    parser.write(bytes);
    await nextSlice();
  }
  return parser;
}

function withXmlErrors<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (error instanceof XmlError) throw invalidXml(error.line, error.column, error.message);
    throw error;
  }
}

function parseBlockChoice({ name, text, children, line, column }: XmlElement): BlockChoice {
  if (!SOURCES.has(name) || children.length > 0) {
    throw new XmlError(`The element ${name} is not expected here.`, line, column);
  }
  return { source: name as BlockSource, id: text.trim() };
}

export function blockElements(blocks: readonly ListedBlock[]): Buffer {
  let xml = '';
  for (const { id, length } of blocks) {
    xml += `<Block><Name>${escapeXml(id)}</Name><Size>${length}</Size></Block>`;
  }
  return Buffer.from(xml);
}

export function blockListXml({ committed, uncommitted }: BlockLists<Buffer>): Buffer[] {
  return [
    Buffer.from('<BlockList>'),
    ...listElement('CommittedBlocks', committed),
    ...listElement('UncommittedBlocks', uncommitted),
    Buffer.from('</BlockList>'),
  ];
}

function listElement(name: string, blocks: readonly Buffer[] | undefined): Buffer[] {
  if (!blocks) return [];
  if (blocks.every(({ length }) => length === 0)) return [Buffer.from(`<${name} />`)];
  return [Buffer.from(`<${name}>`), ...blocks, Buffer.from(`</${name}>`)];
}
