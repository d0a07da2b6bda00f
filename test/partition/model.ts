/** Reference model: a sorted array, one transaction after another. It uses nothing of src. */
export type Operation =
  | { readonly kind: 'get'; readonly name: string }
  | { readonly kind: 'getMany'; readonly names: readonly string[] }
  | (ScanBounds & { readonly kind: 'scan' | 'scanUnchecked' })
  | { readonly kind: 'put'; readonly name: string; readonly value: string }
  | { readonly kind: 'remove'; readonly name: string }
  | { readonly kind: 'add' | 'max'; readonly name: string; readonly n: bigint }
  | { readonly kind: 'wait' };

export interface ScanBounds {
  readonly from: string;
  readonly to: string;
  readonly limit: number;
  readonly bytesMax?: number;
  readonly reverse: boolean;
}

/** A transaction function; one that throws does so at its end. */
export interface Program {
  readonly operations: readonly Operation[];
  readonly throws: boolean;
}

export interface ModelRow {
  readonly name: string;
  readonly value: string;
  readonly timestamp: bigint;
}

/** The result of each operation, as text; writes have none. */
export type Observed = readonly string[];

export function run(
  before: readonly ModelRow[],
  { operations, throws }: Program,
  timestamp: bigint,
): { rows: readonly ModelRow[]; observed: Observed } {
  let rows = before;
  const observed = operations.map((operation) => {
    switch (operation.kind) {
      case 'get':
        return show([find(rows, operation.name)]);
      case 'getMany':
        return show(operation.names.map((name) => find(rows, name)));
      case 'scan':
      case 'scanUnchecked':
        return show(scanRows(rows, operation));
      case 'put':
        rows = [...without(rows, operation.name), { name: operation.name, value: operation.value, timestamp }].sort(
          byName,
        );
        return '';
      case 'remove':
        rows = without(rows, operation.name);
        return '';
      case 'add':
        rows = sum(rows, operation.name, operation.n, versionOver(find(before, operation.name), timestamp));
        return '';
      case 'max':
        rows = raise(rows, operation.name, operation.n, versionOver(find(before, operation.name), timestamp));
        return '';
      default:
        return '';
    }
  });
  return { rows: throws ? before : rows, observed };
}

export function show(rows: readonly ({ name: string; value: string } | undefined)[]): string {
  return rows.map((row) => (row ? `${row.name}=${row.value}` : '-')).join(' ');
}

/** A program that ran concurrently with others. */
export interface Happened {
  readonly program: Program;
  /** The results of its last attempt. */
  readonly observed: Observed;
  readonly timestamp: bigint;
  /** Values of one counter: a program that ended before another started comes first. */
  readonly began: number;
  readonly ended: number;
}

/** A serial order that explains all results and the final rows; undefined: there is none. */
export function explain(
  before: readonly ModelRow[],
  happened: readonly Happened[],
  left: readonly ModelRow[],
): readonly Happened[] | undefined {
  const dead = new Set<string>();

  function search(
    rows: readonly ModelRow[],
    open: readonly Happened[],
    done: readonly Happened[],
  ): readonly Happened[] | undefined {
    if (open.length === 0) return sameRows(rows, left) ? done : undefined;
    const place = `${open.map(({ began }) => began)} ${text(rows)}`;
    if (dead.has(place)) return undefined;
    for (const next of open) {
      if (open.some(({ ended }) => ended < next.began)) continue;
      const result = run(rows, next.program, next.timestamp);
      const agrees = result.observed.every((seen, i) => unchecked(next.program, i) || seen === next.observed[i]);
      if (!agrees || !timestampsRise(rows, result.rows)) continue;
      const others = open.filter((other) => other !== next);
      const found = search(result.rows, others, [...done, next]);
      if (found) return found;
    }
    dead.add(place);
    return undefined;
  }

  return search(before, happened, []);
}

const unchecked = (program: Program, i: number): boolean => program.operations[i]?.kind === 'scanUnchecked';
const text = (rows: readonly ModelRow[]): string =>
  rows.map((row) => `${row.name}=${row.value}@${row.timestamp}`).join();

/** Several adds of one commit raise the version of their counter once; here each of them does. */
function sameRows(rows: readonly ModelRow[], left: readonly ModelRow[]): boolean {
  return (
    rows.length === left.length &&
    rows.every(({ name, value, timestamp }, i) => {
      const found = left[i]!;
      const isSameVersion = name.startsWith('~') ? found.timestamp <= timestamp : found.timestamp === timestamp;
      return found.name === name && found.value === value && isSameVersion;
    })
  );
}

function timestampsRise(before: readonly ModelRow[], rows: readonly ModelRow[]): boolean {
  return rows.every((row) => row.timestamp >= (find(before, row.name)?.timestamp ?? 0n));
}

function scanRows(
  rows: readonly ModelRow[],
  { from, to, limit, bytesMax = Infinity, reverse }: ScanBounds,
): ModelRow[] {
  const inside = rows.filter(({ name }) => name >= from && name < to);
  const found: ModelRow[] = [];
  let bytes = 0;
  for (const row of reverse ? inside.reverse() : inside) {
    if (found.length >= limit || bytes >= bytesMax) break;
    found.push(row);
    bytes += row.value.length;
  }
  return found;
}

/** A counter is a row with a number; at zero there is no row. */
function sum(rows: readonly ModelRow[], name: string, n: bigint, timestamp: bigint): readonly ModelRow[] {
  const value = String(BigInt(find(rows, name)?.value ?? 0) + n);
  const others = without(rows, name);
  return value === '0' ? others : [...others, { name, value, timestamp }].sort(byName);
}

/** A maximum is a row with a number; a write that does not raise it leaves the row alone. */
function raise(rows: readonly ModelRow[], name: string, n: bigint, timestamp: bigint): readonly ModelRow[] {
  const found = find(rows, name);
  if (found && BigInt(found.value) >= n) return rows;
  return [...without(rows, name), { name, value: String(n), timestamp }].sort(byName);
}

/** An add may come after one with a higher timestamp. */
function versionOver(replaced: ModelRow | undefined, timestamp: bigint): bigint {
  return replaced && replaced.timestamp >= timestamp ? replaced.timestamp + 1n : timestamp;
}

const find = (rows: readonly ModelRow[], name: string): ModelRow | undefined => rows.find((row) => row.name === name);
const without = (rows: readonly ModelRow[], name: string): ModelRow[] => rows.filter((row) => row.name !== name);
const byName = (one: ModelRow, other: ModelRow): number => (one.name < other.name ? -1 : 1);
