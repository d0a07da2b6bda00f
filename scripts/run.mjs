/**
 * node scripts/run.mjs <file> [arguments]: installs and builds if needed, then runs the file in this same process,
 * so that signals reach it directly and a start needs no second Node.
 */
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt, ensureInstalled, root } from './prepare.mjs';

const [file, ...rest] = process.argv.slice(2);
try {
  await ensureInstalled();
  await ensureBuilt();
} catch (error) {
  console.error(`holdfast: ${error.message}`);
  process.exit(1);
}
if (file) {
  process.argv = [process.argv[0], join(root, file), ...rest];
  await import(pathToFileURL(resolve(root, file)).href);
}
