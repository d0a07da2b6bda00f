/** npm run docs: writes docs/operations.md, the tables of the guide to concurrency, and the figures of the README. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileRouter } from '../build/rest/router.js';
import { serviceDefinitions } from '../build/server/services.js';
import { withConcurrencyTables } from './concurrency-tables.mjs';
import { operationsPage } from './operations-page.mjs';
import { root } from './prepare.mjs';
import { withFigures } from './readme-figures.mjs';

mkdirSync(join(root, 'docs'), { recursive: true });
const services = Object.fromEntries(
  Object.entries(serviceDefinitions).map(([service, { definition }]) => [
    service,
    compileRouter(definition.table).rows,
  ]),
);
writeFileSync(join(root, 'docs', 'operations.md'), operationsPage(services));
const concurrency = join(root, 'docs', 'guide', 'concurrency.md');
writeFileSync(concurrency, withConcurrencyTables(readFileSync(concurrency, 'utf8'), services));
const readme = join(root, 'README.md');
writeFileSync(readme, withFigures(readFileSync(readme, 'utf8')));
console.log('docs/operations.md, the tables of docs/guide/concurrency.md and the figures of the README are written.');
