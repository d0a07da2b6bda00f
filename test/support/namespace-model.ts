/** Reference model of the namespace of a share: a map from folded paths to nodes, one operation after another. It uses nothing of src. */
export type Operation = PathOperation | RenameOperation;

interface PathOperation {
  readonly kind: 'mkdir' | 'create' | 'rmdir' | 'rm' | 'list';
  readonly path: string;
}

interface RenameOperation {
  readonly kind: 'mvdir' | 'mv';
  readonly path: string;
  readonly to: string;
  readonly replaces: boolean;
}

interface ModelNode {
  readonly kind: 'directory' | 'file';
  readonly name: string;
}

/** By folded path; the root is the empty one, and is not in it. */
export type Tree = ReadonlyMap<string, ModelNode>;

export const EMPTY: Tree = new Map();

/** The code of a refusal, what a list shows, or nothing. */
export function run(tree: Tree, operation: Operation): { readonly tree: Tree; readonly observed: string } {
  const path = fold(operation.path);
  const refuse = (observed: string) => ({ tree, observed });
  const done = (after: Tree) => ({ tree: after, observed: '' });
  if (!isDirectory(tree, parentOf(path))) return refuse('ParentNotFound');
  const found = tree.get(path);
  switch (operation.kind) {
    case 'mkdir':
      if (found) return refuse(found.kind === 'directory' ? 'ResourceAlreadyExists' : 'ResourceTypeMismatch');
      return done(new Map(tree).set(path, { kind: 'directory', name: lastName(operation.path) }));
    case 'create':
      if (found?.kind === 'directory') return refuse('ResourceTypeMismatch');
      return done(found ? tree : new Map(tree).set(path, { kind: 'file', name: lastName(operation.path) }));
    case 'rmdir':
      if (found?.kind !== 'directory') return refuse('ResourceNotFound');
      if (below(tree, path).length > 0) return refuse('DirectoryNotEmpty');
      return done(without(tree, path));
    case 'rm':
      if (found?.kind !== 'file') return refuse('ResourceNotFound');
      return done(without(tree, path));
    case 'list':
      if (!isDirectory(tree, path)) return refuse('ResourceNotFound');
      return refuse(showEntries(tree, path));
    default:
      return rename(tree, path, operation);
  }
}

function rename(tree: Tree, from: string, { kind, to: given, replaces }: RenameOperation) {
  const refuse = (observed: string) => ({ tree, observed });
  const source = tree.get(from);
  if (source?.kind !== (kind === 'mv' ? 'file' : 'directory')) return refuse('ResourceNotFound');
  const to = fold(given);
  if (!isDirectory(tree, parentOf(to))) return refuse('ParentNotFound');
  if (to.startsWith(`${from}/`)) return refuse('InvalidInput');
  const replaced = to === from ? undefined : tree.get(to);
  if (replaced && (!replaces || replaced.kind === 'directory')) return refuse('ResourceAlreadyExists');
  const after = new Map(tree);
  const moved = [from, ...below(tree, from)];
  for (const path of moved) after.delete(path);
  for (const path of moved) after.set(to + path.slice(from.length), tree.get(path)!);
  after.set(to, { ...source, name: lastName(given) });
  return { tree: after, observed: '' };
}

/** An operation that ran concurrently with others. */
export interface Happened {
  readonly operation: Operation;
  readonly observed: string;
  /** Values of one counter: an operation that ended before another started comes first. */
  readonly began: number;
  readonly ended: number;
}

/** Whether a serial order explains all answers and what is left. */
export function isExplained(happened: readonly Happened[], left: string): boolean {
  const dead = new Set<string>();
  function search(tree: Tree, open: readonly Happened[]): boolean {
    if (open.length === 0) return showTree(tree) === left;
    const place = `${open.map(({ began }) => began)} ${showTree(tree)}`;
    if (dead.has(place)) return false;
    for (const next of open) {
      if (open.some(({ ended }) => ended < next.began)) continue;
      const result = run(tree, next.operation);
      if (result.observed !== next.observed) continue;
      const others = open.filter((other) => other !== next);
      if (search(result.tree, others)) return true;
    }
    dead.add(place);
    return false;
  }
  return search(EMPTY, happened);
}

export const showEntry = (kind: string, name: string): string => `${kind}:${name}`;

/** All paths, in the order of lists. */
export function showTree(tree: Tree, directory = ''): string {
  return children(tree, directory)
    .map((path) => {
      const { kind, name } = tree.get(path)!;
      return `${showEntry(kind, name)}${kind === 'directory' ? `(${showTree(tree, path)})` : ''}`;
    })
    .join(' ');
}

function showEntries(tree: Tree, directory: string): string {
  return children(tree, directory)
    .map((path) => showEntry(tree.get(path)!.kind, tree.get(path)!.name))
    .join(' ');
}

const fold = (path: string): string => path.toUpperCase();
const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')));
const lastName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
const isDirectory = (tree: Tree, path: string): boolean => path === '' || tree.get(path)?.kind === 'directory';
const below = (tree: Tree, path: string): string[] => [...tree.keys()].filter((each) => each.startsWith(`${path}/`));
const children = (tree: Tree, path: string): string[] =>
  [...tree.keys()].filter((each) => parentOf(each) === path && each !== '').sort();
const without = (tree: Tree, path: string): Tree => new Map([...tree].filter(([each]) => each !== path));
