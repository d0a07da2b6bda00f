/** A naive model of two files that several clients open, close and delete, and that REST uses meanwhile; and a search for an order that explains a history. */

export const READ = 1;
export const WRITE = 2;
export const DELETE = 4;

export type OpenStep =
  | {
      readonly kind: 'open';
      readonly path: string;
      readonly slot: number;
      readonly access: number;
      readonly share: number;
      readonly disposition: 'open' | 'create' | 'openIf' | 'overwriteIf';
      readonly deletesOnClose: boolean;
    }
  | { readonly kind: 'close'; readonly slot: number }
  | { readonly kind: 'mark'; readonly slot: number; readonly pending: boolean }
  | { readonly kind: 'get' | 'stat' | 'meta' | 'put' | 'rm'; readonly path: string }
  | { readonly kind: 'mv'; readonly path: string; readonly to: string }
  | { readonly kind: 'list' }
  /** The process of the client dies, and another takes its place. */
  | { readonly kind: 'die' };

interface Held {
  readonly client: number;
  readonly slot: number;
  readonly access: number;
  readonly share: number;
  readonly deletesOnClose: boolean;
}

interface ModelFile {
  readonly opens: readonly Held[];
  /** Clients that marked it for deletion. */
  readonly markedBy: readonly number[];
}

/** By path. */
export type World = Readonly<Record<string, ModelFile>>;

const conflicts = (access: number, share: number, other: Held): boolean =>
  access !== 0 && other.access !== 0 && ((access & ~other.share) !== 0 || (other.access & ~share) !== 0);
const isHeld = (file: ModelFile, client: number, slot?: number): Held | undefined =>
  file.opens.find((held) => held.client === client && (slot === undefined || held.slot === slot));

const isPending = (file: ModelFile): boolean => file.opens.length > 0 && file.markedBy.length > 0;
const withMark = ({ markedBy }: ModelFile, client: number): number[] => [...new Set([...markedBy, client])].sort();

const REST: Readonly<Record<string, number>> = { get: READ, meta: WRITE, put: WRITE | DELETE, stat: 0 };

function refusal(file: ModelFile | undefined, kind: string): string {
  if (!file) return kind === 'put' ? '' : 'ResourceNotFound';
  if (file.opens.length === 0) return '';
  if (isPending(file)) return 'SMBDeletePending';
  if (kind === 'rm') return 'SharingViolation';
  const access = kind === 'mv' ? DELETE : REST[kind]!;
  return file.opens.some((held) => conflicts(access, 7, held)) ? 'SharingViolation' : '';
}

function without(world: World, path: string): World {
  return Object.fromEntries(Object.entries(world).filter(([name]) => name !== path));
}

/** What the client observes, and the world after the step. */
export function take(
  world: World,
  client: number,
  step: OpenStep,
): { readonly world: World; readonly observed: string } {
  const same = (observed: string) => ({ world, observed });
  const paths = Object.keys(world).sort();
  if (step.kind === 'list') return same(paths.filter((path) => !isPending(world[path]!)).join(' '));
  if (step.kind === 'die') {
    const left = paths.map((path) => {
      const opens = world[path]!.opens.filter((held) => held.client !== client);
      const markedBy = opens.length > 0 ? world[path]!.markedBy.filter((by) => by !== client) : [];
      return [path, { opens, markedBy }];
    });
    return { world: Object.fromEntries(left), observed: '' };
  }
  if (step.kind === 'close' || step.kind === 'mark') {
    const path = paths.find((each) => isHeld(world[each]!, client, step.slot));
    if (path === undefined) return same('nothing');
    const file = world[path]!;
    const held = isHeld(file, client, step.slot)!;
    if (step.kind === 'mark') {
      if (!(held.access & DELETE)) return same('AccessDenied');
      const markedBy = step.pending ? withMark(file, client) : [];
      return { world: { ...world, [path]: { ...file, markedBy } }, observed: '' };
    }
    const opens = file.opens.filter((each) => each !== held);
    const markedBy = held.deletesOnClose ? withMark(file, client) : file.markedBy;
    const isDeleted = markedBy.length > 0 && opens.length === 0;
    return { world: isDeleted ? without(world, path) : { ...world, [path]: { opens, markedBy } }, observed: '' };
  }
  const file = world[step.path];
  if (step.kind === 'open') {
    const { slot, access, share, disposition, deletesOnClose } = step;
    if (paths.some((path) => isHeld(world[path]!, client, slot))) return same('busy');
    if (deletesOnClose && !(access & DELETE)) return same('AccessDenied');
    if (!file && disposition === 'open') return same('ResourceNotFound');
    if (file && isPending(file)) return same('SMBDeletePending');
    if (file && disposition === 'create') return same('ResourceAlreadyExists');
    const needed = access | (file && disposition === 'overwriteIf' ? WRITE : 0);
    if (file?.opens.some((held) => conflicts(needed, share, held))) return same('SharingViolation');
    const opens = [...(file?.opens ?? []), { client, slot, access, share, deletesOnClose }];
    const observed = !file ? 'created' : disposition === 'overwriteIf' ? 'overwritten' : 'opened';
    return { world: { ...world, [step.path]: { opens, markedBy: [] } }, observed };
  }
  const refused = refusal(file, step.kind);
  if (refused) return same(refused);
  if (step.kind === 'put' && !file)
    return { world: { ...world, [step.path]: { opens: [], markedBy: [] } }, observed: '' };
  if (step.kind === 'rm') return { world: without(world, step.path), observed: '' };
  if (step.kind !== 'mv') return same('');
  const target = world[step.to];
  if (target?.opens.length) return same(isPending(target) ? 'SMBDeletePending' : 'SharingViolation');
  return { world: { ...without(world, step.path), [step.to]: file! }, observed: '' };
}

export interface Taken {
  readonly client: number;
  readonly step: OpenStep;
  readonly observed: string;
  readonly began: number;
  readonly ended: number;
}

/** Whether some order that keeps what ended before another began gives each step what it observed. */
export function isExplained(start: World, taken: readonly Taken[]): boolean {
  const failed = new Set<string>();
  const search = (world: World, left: readonly Taken[]): boolean => {
    if (left.length === 0) return true;
    const state = `${JSON.stringify(world)} ${left.map(({ began }) => began).join()}`;
    if (failed.has(state)) return false;
    const firstEnd = Math.min(...left.map(({ ended }) => ended));
    for (const next of left.filter(({ began }) => began < firstEnd)) {
      const after = take(world, next.client, next.step);
      if (
        after.observed === next.observed &&
        search(
          after.world,
          left.filter((each) => each !== next),
        )
      )
        return true;
    }
    failed.add(state);
    return false;
  };
  return search(start, taken);
}
