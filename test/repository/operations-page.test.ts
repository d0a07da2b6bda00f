import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { missingInAzurite } from '../../scripts/azurite-operations.mjs';
import { withConcurrencyTables } from '../../scripts/concurrency-tables.mjs';
import { operationsPage } from '../../scripts/operations-page.mjs';
import { withFigures } from '../../scripts/readme-figures.mjs';
import { compileRouter } from '../../src/rest/router.ts';
import { serviceDefinitions } from '../../src/server/services.ts';
import { root } from '../support/repository-copy.ts';

const services = Object.entries(serviceDefinitions).map(
  ([service, { definition }]) => [service, compileRouter(definition.table).rows] as const,
);
const rows = services.flatMap(([, of]) => of);

describe('docs/operations.md', () => {
  it('is what npm run docs prints from the tables of today', () => {
    expect(readFileSync(join(root, 'docs', 'operations.md'), 'utf8')).toBe(
      operationsPage(Object.fromEntries(services)),
    );
  });

  it.each(rows.filter((row) => row.isImplemented))(
    '$name is covered by an end-to-end test that exists and names it',
    (row) => {
      const test = row.test ?? '';
      expect(test).toMatch(/^test\/end-to-end\/.*\.test\.ts$/);
      expect(existsSync(join(root, test)), test).toBe(true);
      expect(readFileSync(join(root, test), 'utf8')).toContain(row.name);
    },
  );
});

describe('docs/guide/concurrency.md', () => {
  it('has the tables that npm run docs prints from the operation tables of today', () => {
    const page = readFileSync(join(root, 'docs', 'guide', 'concurrency.md'), 'utf8');
    expect(withConcurrencyTables(page, Object.fromEntries(services))).toBe(page);
  });
});

describe('The README', () => {
  it('has the figures of the last bench, as npm run docs prints them', () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    expect(withFigures(readme)).toBe(readme);
    expect(readme).toMatch(/^\| Put Blob of 1 KiB, 64 clients \| [\d,]+\/s \| [\d,]+\/s \| [\d.]+ x \|$/m);
  });
});

describe('The operations that Azurite lacks', () => {
  it('are operations that we know by these names', () => {
    const names = new Set(rows.map((row) => row.name));
    expect([...missingInAzurite].filter((name) => !names.has(name))).toEqual([]);
  });
});
