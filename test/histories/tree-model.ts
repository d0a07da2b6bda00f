/** Sequential model of a share with one directory: its files, renames of both, and snapshots of the whole. It shares no code with the server. */

export type TreeRequest =
  | { readonly kind: 'put'; readonly directory: string; readonly name: string; readonly content: string }
  | { readonly kind: 'delete'; readonly directory: string; readonly name: string }
  /** Replaces a file that is there. */
  | { readonly kind: 'rename'; readonly directory: string; readonly name: string; readonly to: string }
  | { readonly kind: 'rename directory'; readonly directory: string; readonly to: string }
  | { readonly kind: 'snapshot' }
  /** `snapshot` is one that was answered. */
  | { readonly kind: 'get'; readonly directory: string; readonly name: string; readonly snapshot?: string | undefined }
  | { readonly kind: 'list'; readonly directory: string; readonly snapshot?: string | undefined };

export type TreeAnswer =
  | 'done'
  | 'not found'
  | { readonly content: string }
  | { readonly names: string }
  | { readonly snapshot: string };

export interface TreeOperation {
  readonly client: number;
  readonly request: TreeRequest;
  /** Milliseconds of one monotonic clock. */
  readonly called: number;
  /** Missing: it has happened or not. */
  readonly returned?: { readonly at: number; readonly answer: TreeAnswer };
  /** Of one without an answer: when its server was gone, and it cannot happen any more. */
  readonly lostAt?: number;
}

export interface Tree {
  /** The name that the directory has now. */
  readonly directory: string;
  readonly files: ReadonlyMap<string, string>;
}

export const EMPTY: Tree = { directory: 'one', files: new Map() };

/** Of requests to the share itself: what is read of a snapshot is what would have been read when it was taken. */
export function stepOfTree(state: Tree, request: TreeRequest): { readonly state: Tree; readonly answer: TreeAnswer } {
  const { files } = state;
  const refuse = { state, answer: 'not found' as const };
  const change = (next: Iterable<readonly [string, string]>) => {
    return { state: { ...state, files: new Map(next) }, answer: 'done' as const };
  };
  if (request.kind === 'snapshot') return { state, answer: 'done' };
  if (state.directory !== request.directory) return refuse;
  const others = (...names: string[]) => [...files].filter(([name]) => !names.includes(name));
  switch (request.kind) {
    case 'list':
      return { state, answer: { names: [...files.keys()].sort().join() } };
    case 'get': {
      const content = files.get(request.name);
      return content === undefined ? refuse : { state, answer: { content } };
    }
    case 'put':
      return change([...others(request.name), [request.name, request.content]]);
    case 'delete':
      return files.has(request.name) ? change(others(request.name)) : refuse;
    case 'rename': {
      const content = files.get(request.name);
      return content === undefined ? refuse : change([...others(request.name, request.to), [request.to, content]]);
    }
    case 'rename directory':
      return { state: { ...state, directory: request.to }, answer: 'done' };
  }
}

export const changesNothing = ({ kind }: TreeRequest): boolean =>
  kind === 'get' || kind === 'list' || kind === 'snapshot';

export const describeTree = ({ directory, files }: Tree): string => `${directory}{${[...files].sort().join(' ')}}`;
