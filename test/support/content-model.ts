/** Reference model of blobs and blocks as plain bytes, and a recount of all references. It imports nothing of src. */

export interface ModelPiece {
  readonly label: string;
  readonly bytes: Buffer;
}

/** A segment of a block list: an uncommitted block, or the segment of the blob at this index, if they exist. */
export type Chosen = { readonly staged: string } | { readonly committed: number };

export type Command =
  | { readonly kind: 'put'; readonly blob: string; readonly piece: ModelPiece }
  | { readonly kind: 'stage'; readonly label: string; readonly piece: ModelPiece }
  | { readonly kind: 'commit'; readonly blob: string; readonly chosen: readonly Chosen[] }
  | { readonly kind: 'copy'; readonly from: string; readonly to: string }
  | { readonly kind: 'delete'; readonly blob: string };

export interface Model {
  readonly blobs: Map<string, readonly ModelPiece[]>;
  readonly staged: Map<string, ModelPiece>;
}

export function emptyModel(): Model {
  return { blobs: new Map(), staged: new Map() };
}

export function apply({ blobs, staged }: Model, command: Command): void {
  if (command.kind === 'put') blobs.set(command.blob, [command.piece]);
  else if (command.kind === 'stage') staged.set(command.label, command.piece);
  else if (command.kind === 'delete') blobs.delete(command.blob);
  else if (command.kind === 'copy') {
    const source = blobs.get(command.from);
    if (source) blobs.set(command.to, source);
  } else {
    const old = blobs.get(command.blob) ?? [];
    const pieces = command.chosen.flatMap((one) => {
      const piece = 'staged' in one ? staged.get(one.staged) : old[one.committed];
      return piece ? [piece] : [];
    });
    if (pieces.length === 0) return;
    blobs.set(command.blob, pieces);
    staged.clear();
  }
}

export function bytesOf(pieces: readonly ModelPiece[]): Buffer {
  return Buffer.concat(pieces.map(({ bytes }) => bytes));
}

/** The stored rows as plain data. Segments and blocks are lists of the chunks that they reference. */
export interface Stored {
  readonly heads: readonly string[];
  readonly trashed: readonly string[];
  readonly blocks: readonly (readonly string[])[];
  readonly cells: readonly { readonly content: string; readonly chunks: readonly string[] }[];
  readonly contents: readonly { readonly id: string; readonly refs: number }[];
  readonly chunks: readonly {
    readonly id: string;
    readonly refs: number;
    readonly extent: string;
    readonly length: number;
  }[];
  /** Without extents at zero. */
  readonly live: Readonly<Record<string, number>>;
}

/** Every stored count that differs from the recount. */
export function recount({ heads, trashed, blocks, cells, contents, chunks, live }: Stored): string[] {
  const faults: string[] = [];
  const compare = (what: string, counted: Map<string, number>, stored: Iterable<readonly [string, number]>) => {
    const left = new Map(counted);
    for (const [id, count] of stored) {
      if (left.get(id) !== count) faults.push(`${what} ${id}: ${count} stored, ${left.get(id) ?? 0} counted`);
      left.delete(id);
    }
    for (const [id, count] of left) faults.push(`${what} ${id}: none stored, ${count} counted`);
  };
  compare(
    'content',
    tally(heads),
    contents.map(({ id, refs }) => [id, refs] as const),
  );
  compare(
    'chunk',
    tally([...blocks.flat(), ...cells.flatMap((cell) => cell.chunks)]),
    chunks.map(({ id, refs }) => [id, refs] as const),
  );
  const alive = new Map<string, number>();
  for (const { extent, length } of chunks) alive.set(extent, (alive.get(extent) ?? 0) + length);
  compare('extent', alive, Object.entries(live));
  for (const { content } of cells) {
    if (!heads.includes(content) && !trashed.includes(content)) faults.push(`cells of ${content}, which nobody names`);
  }
  return faults;
}

function tally(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
