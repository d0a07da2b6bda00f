/** npm run docs: writes docs/operations.md. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { blobOperations } from '../dist/rest/blob/operations.js';
import { routerOf } from '../dist/rest/router.js';
import { operationsPage } from './operations-page.mjs';
import { root } from './prepare.mjs';

mkdirSync(join(root, 'docs'), { recursive: true });
writeFileSync(join(root, 'docs', 'operations.md'), operationsPage('Blob', routerOf(blobOperations).rows));
console.log('docs/operations.md is written.');
