/** Who imports whom in src, and what leans the wrong way. The layers are explained in ARCHITECTURE.md. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

interface Import {
  readonly from: string;
  /** A path within src, or the name of a package. */
  readonly to: string;
  readonly typeOnly: boolean;
}

const root = fileURLToPath(new URL('..', import.meta.url));

/** What the layers above know of the rows. */
const ofPartition = ['partition/partition.ts', 'partition/keys.ts', 'partition/values.ts'];

/** Layer → the folders and files it may lean on, besides itself. "types of x": by `import type` only. */
const mayLeanOn: Readonly<Record<string, readonly string[]>> = {
  base: [],
  hashing: ['base'],
  rules: ['base'],
  partition: ['base'],
  extents: ['base', 'hashing'],
  content: ['base', 'hashing', ...ofPartition, 'extents/extents.ts'],
  services: ['rules', 'content', 'base', 'hashing', ...ofPartition],
  rest: ['services', 'base', 'hashing', 'types of rules'],
};

/** Where choices are made: these see everything, and nothing below sees them. */
const top = ['index.ts', 'bin', 'cli', 'server'];

/** Packages that the build puts into dist, with their licences. */
const bundled = ['pino'];

/** By the only file that knows them. */
const engines: Readonly<Record<string, readonly string[]>> = {
  'server/open-partition.ts': [
    'partition/lmdb/engine.ts',
    'partition/memory/engine.ts',
    'partition/postgres/engine.ts',
  ],
  'server/open-storage.ts': ['extents/local.ts', 'extents/memory.ts'],
};

describe('The layers', () => {
  const files = sourceFiles();
  const imports = files.flatMap(importsOf);
  const inside = imports.filter(({ to }) => to.endsWith('.ts'));

  it('lean downwards only', () => {
    console.log(whoImportsWhom(inside));
    expect(inside.length).toBeGreaterThan(20);
    expect(inside.map(wrongLean).filter((fault) => fault !== undefined)).toEqual([]);
  });

  it('have a name: every folder and every file of src is known here', () => {
    expect(files.map(layerOf).filter((layer) => !(layer in mayLeanOn) && !top.includes(layer))).toEqual([]);
  });

  it('keep the rules free of I/O, clocks and waiting', () => {
    const outside = imports.filter(({ from, to }) => layerOf(from) === 'rules' && !to.endsWith('.ts'));
    expect(outside.filter(({ to }) => to !== 'node:assert')).toEqual([]);
    const impure = /\bawait\b|\basync\b|\bDate\.now\b|\bnew Date\(\)|\bperformance\.|\bprocess\.|\bMath\.random\b/;
    expect(files.filter((file) => layerOf(file) === 'rules' && impure.test(codeOf(file)))).toEqual([]);
  });

  it('use no package that the published one does not bring along', () => {
    const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const packages = imports.filter(({ from, to }) => !to.endsWith('.ts') && !from.includes('conformance'));
    const brought = [...Object.keys(dependencies), ...bundled];
    const strangers = packages.filter(({ to }) => !to.startsWith('node:') && !brought.includes(to));
    expect(strangers).toEqual([]);
  });
});

describe('The judgement on an import', () => {
  const judged: [from: string, to: string, typeOnly: boolean, right: boolean][] = [
    ['base/xml.ts', 'base/time.ts', false, true],
    ['base/xml.ts', 'rules/names.ts', true, false],
    ['rules/lease.ts', 'partition/partition.ts', true, false],
    ['services/blob/blobs.ts', 'partition/keys.ts', false, true],
    ['services/blob/blobs.ts', 'partition/transact.ts', false, false],
    ['services/blob/blobs.ts', 'content/content.ts', false, true],
    ['services/blob/blobs.ts', 'extents/extents.ts', true, false],
    ['services/blob/blobs.ts', 'rest/reply.ts', true, false],
    ['content/content-store.ts', 'extents/extents.ts', false, true],
    ['content/content-store.ts', 'extents/local.ts', false, false],
    ['content/content-store.ts', 'partition/values.ts', false, true],
    ['content/content-store.ts', 'partition/transact.ts', false, false],
    ['content/content-store.ts', 'services/common/storage.ts', true, false],
    ['content/content-store.ts', 'rules/etag.ts', true, false],
    ['extents/local.ts', 'base/log.ts', false, true],
    ['extents/local.ts', 'partition/partition.ts', true, false],
    ['extents/local.ts', 'content/rows.ts', true, false],
    ['extents/conformance/damage.ts', 'extents/memory.ts', false, true],
    ['partition/lmdb/engine.ts', 'extents/extents.ts', true, false],
    ['rest/http/server.ts', 'content/content.ts', true, false],
    ['services/queue/queues.ts', 'services/blob/blobs.ts', false, false],
    ['services/datalake/paths.ts', 'services/blob/blobs.ts', false, true],
    ['rest/params.ts', 'rules/lease.ts', true, true],
    ['rest/params.ts', 'rules/lease.ts', false, false],
    ['rest/http/server.ts', 'server/config.ts', false, false],
    ['server/open-partition.ts', 'partition/lmdb/engine.ts', false, true],
    ['server/open-storage.ts', 'partition/lmdb/engine.ts', false, false],
    ['server/open-storage.ts', 'extents/local.ts', false, true],
    ['bin/holdfast.ts', 'partition/lmdb/engine.ts', false, false],
    ['partition/transact.ts', 'partition/memory/engine.ts', false, false],
    ['partition/conformance/reads.ts', 'partition/memory/engine.ts', false, true],
  ];
  it.each(judged)('of %s on %s (types only: %s) is right: %s', (from, to, typeOnly, right) => {
    expect(wrongLean({ from, to, typeOnly }) === undefined).toBe(right);
  });
});

function wrongLean({ from, to, typeOnly }: Import): string | undefined {
  const [lower, upper] = [layerOf(to), layerOf(from)];
  const fault = `${from} -> ${to}`;
  if (Object.values(engines).flat().includes(to))
    return engines[from]?.includes(to) || from.includes('conformance') ? undefined : fault;
  if (top.includes(upper)) return undefined;
  if (lower === upper) return sideways(from, to) ? fault : undefined;
  const allowed = mayLeanOn[upper] ?? [];
  return allowed.includes(lower) || allowed.includes(to) || (typeOnly && allowed.includes(`types of ${lower}`))
    ? undefined
    : fault;
}

/** Data Lake works on the rows of blobs; Storage Analytics writes blobs and entities; maintenance walks over all rows. */
const knows: Readonly<Record<string, readonly string[]>> = {
  datalake: ['blob'],
  analytics: ['blob', 'table'],
  maintenance: ['blob', 'queue', 'table', 'accounts'],
};

/** Otherwise services do not know each other; what two of them need moves down. */
function sideways(from: string, to: string): boolean {
  const [layer, area] = from.split('/');
  const [, otherArea] = to.split('/');
  if (layer !== 'services' || area === otherArea || otherArea === 'common') return false;
  return !knows[area!]?.includes(otherArea!);
}

/** The first folder; of a file in src itself, its name. */
function layerOf(file: string): string {
  return file.split('/')[0] ?? file;
}

function sourceFiles(): string[] {
  return readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll(sep, '/'))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .sort();
}

function codeOf(file: string): string {
  return readFileSync(join(root, 'src', file), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
}

function importsOf(file: string): Import[] {
  const statement =
    /^\s*(?:import|export)\s+(type\s)?([^'";]*?\sfrom\s+)?['"]([^'"]+)['"]|\bimport\(['"]([^'"]+)['"]\)/gm;
  return [...codeOf(file).matchAll(statement)].map(([, type, clause, fixed, dynamic]) => {
    const target = fixed ?? dynamic ?? '';
    const names = /\{([^}]*)\}/.exec(clause ?? '')?.[1]?.split(',');
    const allTypes = names?.filter((name) => name.trim() !== '').every((name) => name.trim().startsWith('type '));
    const to = target.startsWith('.') ? posix.join(dirname(file), target) : target;
    return { from: file, to, typeOnly: type !== undefined || allTypes === true };
  });
}

function whoImportsWhom(inside: readonly Import[]): string {
  const lines = new Map<string, Set<string>>();
  for (const { from, to } of inside) {
    const upper = layerOf(from);
    if (upper !== layerOf(to)) lines.set(upper, (lines.get(upper) ?? new Set()).add(layerOf(to)));
  }
  return [...lines].map(([upper, lower]) => `${upper.padEnd(10)} -> ${[...lower].sort().join(', ')}`).join('\n');
}
