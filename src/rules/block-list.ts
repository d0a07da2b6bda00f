/** Blocks: their ids, their number, and the lists in which a block list looks for a block. */

const BLOCK_ID_BYTES_MAX = 64;
export const COMMITTED_BLOCKS_MAX = 50_000;
export const UNCOMMITTED_BLOCKS_MAX = 100_000;

/** The list in which a block list looks for a block. */
export type BlockSource = 'Committed' | 'Uncommitted' | 'Latest';

export interface BlockChoice {
  readonly source: BlockSource;
  /** In base64, as `parseBlockId` gives it. */
  readonly id: string;
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)$/;

const ID_LENGTH_MAX = 4 * Math.ceil(BLOCK_ID_BYTES_MAX / 3);

/** Normalized: bytes have one base64. Undefined: the text is no block id. */
export function parseBlockId(text: string): string | undefined {
  // The memory that the expression needs grows with the text.
  if (text.length > ID_LENGTH_MAX || !BASE64.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length <= BLOCK_ID_BYTES_MAX ? bytes.toString('base64') : undefined;
}

/** The length that counts is that of the bytes: 'MA==' and 'MTA=' are of different length. */
export function blockIdBytes(id: string): number {
  return Buffer.byteLength(id, 'base64');
}

export interface UncommittedBlocks {
  /** Length of every id, in bytes. */
  readonly idLength: number;
  readonly count: number;
}

export type BlockVerdict = 'proceed' | 'InvalidBlobOrBlock' | 'BlockCountExceedsLimit';

/** Committed blocks do not matter here: a new set of blocks may have ids of another length. */
export function judgeBlock(uncommitted: UncommittedBlocks | undefined, id: string, replaces: boolean): BlockVerdict {
  if (uncommitted === undefined) return 'proceed';
  if (uncommitted.idLength !== blockIdBytes(id)) return 'InvalidBlobOrBlock';
  return !replaces && uncommitted.count >= UNCOMMITTED_BLOCKS_MAX ? 'BlockCountExceedsLimit' : 'proceed';
}

/** Lists to search, in order. A block that is in none of them makes the whole block list invalid. */
export function listsToSearch(source: BlockSource): readonly ('committed' | 'uncommitted')[] {
  if (source === 'Committed') return ['committed'];
  return source === 'Uncommitted' ? ['uncommitted'] : ['uncommitted', 'committed'];
}
