/**
 * Writes the declarations of the public interface as one file, twice: for `import` and for `require`, because TypeScript tells
 * modules apart by the ending. What declares the interface imports nothing else, so that to join is all there is to do.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** In src, in the order of reading. */
const sources = ['index', 'server/public'];
const imports = /^(?:import|export) (?:type )?(?:\{[^}]*\}|\*) from '[^']*';\n/gm;

/**
 * @param {string} declarations where the compiler has put the declarations of all modules
 * @param {string} dist where the files go
 */
export function bundleTypes(declarations, dist) {
  const files = sources.map((source) => join(declarations, `${source}.d.ts`)).filter((file) => existsSync(file));
  const text = files.map((file) => readFileSync(file, 'utf8').replace(imports, '')).join('\n');
  for (const ending of ['d.ts', 'd.cts']) writeFileSync(join(dist, `index.${ending}`), text);
}
