import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { operationsPage } from '../../scripts/operations-page.mjs';
import { compileRouter } from '../../src/rest/router.ts';
import { serviceDefinitions } from '../../src/server/services.ts';
import { root } from '../support/repository-copy.ts';

describe('docs/operations.md', () => {
  const services = Object.entries(serviceDefinitions).map(
    ([service, { definition }]) => [service, compileRouter(definition.table).rows] as const,
  );
  const rows = services.flatMap(([, of]) => of);

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
