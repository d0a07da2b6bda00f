/** Helpers for tests of blocks. */
import type { BlockBlobClient } from '@azure/storage-blob';
import type { Answer, Running } from './test-server.ts';

/** The id of a block, in base64. */
export const id = (text: string) => Buffer.from(text).toString('base64');

export async function stage(blob: BlockBlobClient, ...contents: string[]): Promise<void> {
  for (const content of contents) await blob.stageBlock(id(content[0]!), content, content.length);
}

export const pathOf = (blob: BlockBlobClient) => `/${blob.containerName}/${encodeURIComponent(blob.name)}`;

/** `['Latest', 'a']`: the element and the id before its base64. */
export type Choice = readonly [source: string, id: string];

export function listXmlOf(choices: readonly Choice[]): string {
  const elements = choices.map(([source, text]) => `<${source}>${id(text)}</${source}>`).join('');
  return `<?xml version="1.0" encoding="utf-8"?><BlockList>${elements}</BlockList>`;
}

export function commit(
  running: Running,
  blob: BlockBlobClient,
  choices: readonly Choice[],
  headers: Record<string, string> = {},
): Promise<Answer> {
  return running.request('PUT', `${pathOf(blob)}?comp=blocklist`, { headers, body: listXmlOf(choices) });
}

export async function textOf(blob: BlockBlobClient): Promise<string> {
  return (await blob.downloadToBuffer()).toString();
}

/** Names of the committed and of the uncommitted blocks, without base64. */
export async function blocksOf(blob: BlockBlobClient): Promise<{ committed: string[]; uncommitted: string[] }> {
  const { committedBlocks = [], uncommittedBlocks = [] } = await blob.getBlockList('all');
  const names = (blocks: { name: string }[]) => blocks.map(({ name }) => Buffer.from(name, 'base64').toString());
  return { committed: names(committedBlocks), uncommitted: names(uncommittedBlocks) };
}
