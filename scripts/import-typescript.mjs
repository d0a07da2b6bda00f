/** Modules of TypeScript outside of src, for programs that Node runs: it strips no types before version 22. */
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './prepare.mjs';

/**
 * Bundles a module with what it imports of this repository, and imports the bundle.
 * @param {string} path of the module, from the root of the repository
 */
export async function importTypeScript(path) {
  const { rolldown } = await import('rolldown');
  const bundled = await rolldown({
    cwd: root,
    input: join(root, path),
    platform: 'node',
    external: [/^node:/, /^@azure\//, 'holdfast'],
  });
  // One for each process: another may be running its own.
  const file = join(root, dirname(path), '.cache', `${basename(path, '.ts')}-${process.pid}.mjs`);
  await bundled.write({ file, format: 'esm' });
  await bundled.close();
  const { rmSync } = await import('node:fs');
  try {
    return await import(pathToFileURL(file).href);
  } finally {
    rmSync(file);
  }
}
