/** npm run docs: writes docs/operations.md, and the figures of the README. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileRouter } from '../build/rest/router.js';
import { serviceDefinitions } from '../build/server/services.js';
import { operationsPage } from './operations-page.mjs';
import { root } from './prepare.mjs';
import { withFigures } from './readme-figures.mjs';

mkdirSync(join(root, 'docs'), { recursive: true });
const rows = Object.entries(serviceDefinitions).map(([service, { definition }]) => [
  service,
  compileRouter(definition.table).rows,
]);
writeFileSync(join(root, 'docs', 'operations.md'), operationsPage(Object.fromEntries(rows)));
const readme = join(root, 'README.md');
writeFileSync(readme, withFigures(readFileSync(readme, 'utf8')));
console.log('docs/operations.md and the figures of the README are written.');
