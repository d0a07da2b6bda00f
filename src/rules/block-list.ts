/** Blocks: their ids, how many there may be, and which of two blocks with one id a list means. */

export const BLOCK_ID_BYTES_MAX = 64;
export const COMMITTED_BLOCKS_MAX = 50_000;
export const UNCOMMITTED_BLOCKS_MAX = 100_000;

/** Where a block list says that a block is to be taken from. */
export type BlockSource = 'Committed' | 'Uncommitted' | 'Latest';

export interface BlockChoice {
  readonly source: BlockSource;
  /** In base64, as `parseBlockId` gives it. */
  readonly id: string;
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)$/;

const ID_LENGTH_MAX = 4 * Math.ceil(BLOCK_ID_BYTES_MAX / 3);

/** The one base64 of its bytes; undefined: it is no block id. */
export function parseBlockId(text: string): string | undefined {
  // The expression needs memory with the length of its text.
  if (text.length > ID_LENGTH_MAX || !BASE64.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length <= BLOCK_ID_BYTES_MAX ? bytes.toString('base64') : undefined;
}

/** Ids are compared in length by their bytes: 'MA==' and 'MTA=' are of different length. */
export function blockIdBytes(id: string): number {
  return Buffer.byteLength(id, 'base64');
}

export interface UncommittedBlocks {
  /** Of every id, in bytes. */
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

/** Where to look, in order; a block that is in none of these lists makes the whole block list invalid. */
export function listsToSearch(source: BlockSource): readonly ('committed' | 'uncommitted')[] {
  if (source === 'Committed') return ['committed'];
  return source === 'Uncommitted' ? ['uncommitted'] : ['uncommitted', 'committed'];
}
