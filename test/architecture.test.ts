/** Layer check: which modules of src import which, and which imports are against the layers of ARCHITECTURE.md. */
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

/** The interface of the partition for the layers above it. */
const partitionInterface = ['partition/partition.ts', 'partition/keys.ts', 'partition/values.ts'];

/** Layer → the layers and files that it may import, besides its own. "types of x": by `import type` only. */
const allowedImports: Readonly<Record<string, readonly string[]>> = {
  base: [],
  hashing: ['base'],
  rules: ['base'],
  partition: ['base'],
  extents: ['base', 'hashing'],
  content: ['base', 'hashing', ...partitionInterface, 'extents/extents.ts'],
  services: ['rules', 'content', 'base', 'hashing', ...partitionInterface],
  rest: ['services', 'base', 'hashing', 'types of rules'],
  smb: ['services', 'base', 'types of rules'],
};

/** The composition root and its programs: they may import every layer, and no layer imports them. */
const topLayers = ['index.ts', 'bin', 'cli', 'server'];

/** Packages that the build bundles into dist, with their licences. */
const bundled = ['pino', 'yaml'];

/** Implementations of interfaces, by the only file that may import them. */
const implementations: Readonly<Record<string, readonly string[]>> = {
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

  it('depend on lower layers only', () => {
    console.log(formatImportGraph(inside));
    expect(inside.length).toBeGreaterThan(20);
    expect(inside.map(importFault).filter((fault) => fault !== undefined)).toEqual([]);
  });

  it('are all listed here: every folder and every file of src belongs to one', () => {
    expect(files.map(layerOf).filter((layer) => !(layer in allowedImports) && !topLayers.includes(layer))).toEqual([]);
  });

  it('declare no type twice: within a layer a name means one thing', () => {
    const declaration = /^(?:export )?(?:declare )?(?:abstract )?(?:type|interface|class|enum) (\w+)/gm;
    const filesByName = new Map<string, string[]>();
    for (const file of files) {
      for (const [, name] of codeOf(file).matchAll(declaration)) {
        const qualified = `${layerOf(file)}: ${name}`;
        filesByName.set(qualified, [...(filesByName.get(qualified) ?? []), file]);
      }
    }
    expect(filesByName.size).toBeGreaterThan(100);
    expect([...filesByName].filter(([, declaredIn]) => declaredIn.length > 1)).toEqual([]);
  });

  it('keep the rules free of I/O, clocks and waiting', () => {
    const outside = imports.filter(({ from, to }) => layerOf(from) === 'rules' && !to.endsWith('.ts'));
    expect(outside.filter(({ to }) => to !== 'node:assert')).toEqual([]);
    const impure = /\bawait\b|\basync\b|\bDate\.now\b|\bnew Date\(\)|\bperformance\.|\bprocess\.|\bMath\.random\b/;
    expect(files.filter((file) => layerOf(file) === 'rules' && impure.test(codeOf(file)))).toEqual([]);
  });

  it('use no package that the published one does not install or bundle', () => {
    const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const packages = imports.filter(({ from, to }) => !to.endsWith('.ts') && !from.includes('conformance'));
    const available = [...Object.keys({ ...dependencies, ...peerDependencies }), ...bundled];
    const missing = packages.filter(({ to }) => !to.startsWith('node:') && !available.includes(to));
    expect(missing).toEqual([]);
  });
});

describe('An import', () => {
  const cases: [from: string, to: string, typeOnly: boolean, allowed: boolean][] = [
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
    ['content/content-store.ts', 'rules/conditions.ts', true, false],
    ['extents/local.ts', 'base/log.ts', false, true],
    ['extents/local.ts', 'partition/partition.ts', true, false],
    ['extents/local.ts', 'content/rows.ts', true, false],
    ['extents/conformance.ts', 'extents/memory.ts', false, true],
    ['partition/lmdb/engine.ts', 'extents/extents.ts', true, false],
    ['rest/http/server.ts', 'content/content.ts', true, false],
    ['services/queue/queues.ts', 'services/blob/blobs.ts', false, false],
    ['services/datalake/paths.ts', 'services/blob/blobs.ts', false, true],
    ['rest/params.ts', 'rules/lease.ts', true, true],
    ['rest/params.ts', 'rules/lease.ts', false, false],
    ['rest/http/server.ts', 'server/config.ts', false, false],
    ['smb/handlers/create.ts', 'services/file/files.ts', false, true],
    ['smb/handlers/create.ts', 'smb/wire/create.ts', false, true],
    ['smb/handlers/create.ts', 'rules/file/names.ts', false, false],
    ['smb/server.ts', 'rest/reply.ts', false, false],
    ['smb/wire/create.ts', 'smb/wire/struct.ts', false, true],
    ['smb/wire/create.ts', 'smb/statuses.ts', true, false],
    ['smb/wire/create.ts', 'base/time.ts', false, false],
    ['server/open-partition.ts', 'partition/lmdb/engine.ts', false, true],
    ['server/open-storage.ts', 'partition/lmdb/engine.ts', false, false],
    ['server/open-storage.ts', 'extents/local.ts', false, true],
    ['bin/holdfast.ts', 'partition/lmdb/engine.ts', false, false],
    ['partition/transact.ts', 'partition/memory/engine.ts', false, false],
    ['partition/conformance/reads.ts', 'partition/memory/engine.ts', false, true],
  ];
  it.each(cases)('by %s of %s (types only: %s) is allowed: %s', (from, to, typeOnly, allowed) => {
    expect(importFault({ from, to, typeOnly }) === undefined).toBe(allowed);
  });
});

function importFault({ from, to, typeOnly }: Import): string | undefined {
  const [lower, upper] = [layerOf(to), layerOf(from)];
  const fault = `${from} -> ${to}`;
  if (Object.values(implementations).flat().includes(to))
    return implementations[from]?.includes(to) || from.includes('conformance') ? undefined : fault;
  if (topLayers.includes(upper)) return undefined;
  if (from.startsWith('smb/wire/') && !to.startsWith('smb/wire/')) return fault;
  if (lower === upper) return isSideways(from, to) ? fault : undefined;
  const allowed = allowedImports[upper] ?? [];
  return allowed.includes(lower) || allowed.includes(to) || (typeOnly && allowed.includes(`types of ${lower}`))
    ? undefined
    : fault;
}

/** Data Lake works on the rows of blobs; Storage Analytics writes blobs and entities; maintenance scans all rows. */
const allowedServices: Readonly<Record<string, readonly string[]>> = {
  datalake: ['blob'],
  analytics: ['blob', 'table'],
  maintenance: ['blob', 'queue', 'table', 'file', 'accounts'],
};

/** Otherwise services do not import each other: what two of them need moves to a lower layer, or to services/common. */
function isSideways(from: string, to: string): boolean {
  const [layer, area] = from.split('/');
  const [, otherArea] = to.split('/');
  if (layer !== 'services' || area === otherArea || otherArea === 'common') return false;
  return !allowedServices[area!]?.includes(otherArea!);
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

function formatImportGraph(inside: readonly Import[]): string {
  const graph = new Map<string, Set<string>>();
  for (const { from, to } of inside) {
    const upper = layerOf(from);
    if (upper !== layerOf(to)) graph.set(upper, (graph.get(upper) ?? new Set()).add(layerOf(to)));
  }
  return [...graph].map(([upper, lower]) => `${upper.padEnd(10)} -> ${[...lower].sort().join(', ')}`).join('\n');
}
