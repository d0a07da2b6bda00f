/** Sequential model of the content of an append or page blob, as text: `append w1+w2+w5!` is sealed, `page w1[w2,,w3,]#7` has the sequence number 7. */
export type InPlaceType = 'append' | 'page';

export type InPlaceRequest =
  | {
      readonly kind: 'append';
      /** No other request of the history has it. */
      readonly piece: string;
      readonly position?: number | undefined;
    }
  | { readonly kind: 'seal' }
  | {
      readonly kind: 'write cells';
      readonly cells: Cells;
      /** No other request of the history has it. */
      readonly text: string;
      readonly sequenceMax?: number | undefined;
    }
  | { readonly kind: 'clear cells'; readonly cells: Cells; readonly sequenceMax?: number | undefined }
  | { readonly kind: 'set sequence'; readonly action: 'max' | 'update' | 'increment'; readonly number?: number };

/** From the one to before the other. */
export type Cells = readonly [number, number];

/** Ranges of pages: the first ones are stored as chunks, the others in the page of the map. */
export const CELLS: readonly { readonly from: number; readonly to: number }[] = [
  { from: 0, to: 8_192 },
  { from: 8_192, to: 16_384 },
  { from: 16_384, to: 16_896 },
  { from: 16_896, to: 17_408 },
];

export interface InPlaceAnswer {
  /** The offset of an append. */
  readonly position?: number | undefined;
  readonly blocks?: number | undefined;
  readonly sequence?: number | undefined;
}

/** Of a new blob. */
export const initialContent = (type: InPlaceType, id: string) =>
  type === 'append' ? `append ${id}` : `page ${id}[${',,,'}]#0`;

export const isInPlace = (content: string) => /^(?:append|page) /.test(content);

export function isInPlaceRequest(request: { readonly kind: string }): request is InPlaceRequest {
  return ['append', 'seal', 'write cells', 'clear cells', 'set sequence'].includes(request.kind);
}

/** The lengths differ, so that short and long ones are told apart by the offsets of others. */
export const pieceBytes = (piece: string) => (Number(piece.slice(1)) % 8 === 0 ? 6_000 : 40);

export function changeContent(
  content: string,
  request: InPlaceRequest,
): { readonly content: string; readonly answer: InPlaceAnswer } | { readonly refused: string } {
  switch (request.kind) {
    case 'append': {
      const { pieces } = parseAppend(content);
      const position = lengthOfAppend(content);
      if (isSealed(content)) return { refused: 'BlobIsSealed' };
      if (request.position !== undefined && request.position !== position)
        return { refused: 'AppendPositionConditionNotMet' };
      return { content: `${content}+${request.piece}`, answer: { position, blocks: pieces.length + 1 } };
    }
    case 'seal':
      return { content: isSealed(content) ? content : `${content}!`, answer: {} };
    default: {
      const { id, cells, sequence } = parsePage(content);
      if (request.kind === 'set sequence') {
        const { action, number = 0 } = request;
        const next = { max: Math.max(sequence, number), update: number, increment: sequence + 1 }[action];
        return { content: formatPage(id, cells, next), answer: { sequence: next } };
      }
      if (request.sequenceMax !== undefined && sequence > request.sequenceMax)
        return { refused: 'SequenceNumberConditionNotMet' };
      const [from, to] = request.cells;
      const text = request.kind === 'write cells' ? request.text : '';
      const next = cells.map((cell, i) => (from <= i && i < to ? text : cell));
      return { content: formatPage(id, next, sequence), answer: { sequence } };
    }
  }
}

/**
 * Whether this state of an append blob can lead to what was read of it: all its states are beginnings of one text.
 * @param longest by the id of the blob's creation
 */
export function canLeadTo(content: string, longest: ReadonlyMap<string, string>): boolean {
  if (!content.startsWith('append ')) return true;
  const own = content.replace(/!$/, '');
  const read = longest.get(parseAppend(content).id) ?? '';
  return own.length > read.length || read.startsWith(own);
}

/** By the id of the blob's creation: the longest of these contents. */
export function longestContents(contents: readonly string[]): Map<string, string> {
  const longest = new Map<string, string>();
  for (const content of contents) {
    if (!content.startsWith('append ')) continue;
    const { id } = parseAppend(content);
    const own = content.replace(/!$/, '');
    if (own.length > (longest.get(id)?.length ?? 0)) longest.set(id, own);
  }
  return longest;
}

export function lengthOfAppend(content: string): number {
  return parseAppend(content).pieces.reduce((sum, piece) => sum + pieceBytes(piece), 0);
}

const isSealed = (content: string) => content.endsWith('!');

function parseAppend(content: string): { readonly id: string; readonly pieces: readonly string[] } {
  const [id = '', ...pieces] = content.replace(/!$/, '').slice('append '.length).split('+');
  return { id, pieces };
}

function parsePage(content: string) {
  const [, id = '', cells = '', sequence] = /^page ([^[]*)\[([^\]]*)\]#(\d+)$/.exec(content) ?? [];
  return { id, cells: cells.split(','), sequence: Number(sequence) };
}

export const formatPage = (id: string, cells: readonly string[], sequence: number) =>
  `page ${id}[${cells.join(',')}]#${sequence}`;
