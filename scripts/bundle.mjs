/**
 * Puts the modules of src into the few files of dist: to load some three hundred one by one would be most of a start.
 * A package that package.json names for run time stays outside; any other that is imported goes in, and its licence beside it.
 */
import * as fs from 'node:fs';
import { basename, join } from 'node:path';

const LIBRARY = 'index';

/** In src. Each is a file of its own, which shares nothing, so that a thread has only that one to load. */
const threads = ['partition/lmdb/checkpoint-worker', 'hashing/hash-worker'];

/**
 * @param {string} root the repository
 * @param {string} dist where the files go
 */
export async function bundle(root, dist) {
  const { rolldown } = await import('rolldown');
  const { bin, dependencies, peerDependencies } = JSON.parse(fs.readFileSync(join(root, 'package.json'), 'utf8'));
  const programs = Object.values(bin).map((file) => file.replace(/^dist\/|\.js$/g, ''));
  const external = [/^node:/, ...Object.keys({ ...dependencies, ...peerDependencies })];
  const modules = [];
  const library = [LIBRARY, LIBRARY];
  /** @type {[entries: string[][], format?: 'cjs'][]} */
  const groups = [
    [[...programs.map((program) => [program, program]), library]],
    ...threads.map((thread) => /** @type {[string[][]]} */ ([[[basename(thread), thread]]])),
    // Jest and older programs load the library by `require`.
    [[library], 'cjs'],
  ];
  for (const [entries, format] of groups) {
    const files = entries.map(([name, source]) => [name, join(root, 'src', `${source}.ts`)]);
    const input = Object.fromEntries(files.filter(([, file]) => fs.existsSync(file)));
    if (Object.keys(input).length === 0) continue;
    const bundled = await rolldown({ cwd: root, input, platform: 'node', external });
    const names = `[name].${format ?? 'js'}`;
    const { output } = await bundled.write({
      ...{ dir: dist, format, sourcemap: true },
      ...{ entryFileNames: names, chunkFileNames: names },
    });
    await bundled.close();
    modules.push(...output.flatMap(({ moduleIds = [] }) => moduleIds));
  }
  fs.mkdirSync(dist, { recursive: true });
  fs.writeFileSync(join(dist, 'licences.txt'), licencesOf(modules));
}

/** Of the packages that these modules are of. */
function licencesOf(modules) {
  const folders = modules.map((file) => /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(file)?.[0]);
  const texts = [...new Set(folders)].filter(Boolean).map((folder) => {
    const { name, version } = JSON.parse(fs.readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = fs.readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    if (!file) throw new Error(`${name} has no licence that could be passed on: it has to stay outside of the bundle.`);
    return `${name} ${version}\n\n${fs.readFileSync(join(folder, file), 'utf8').trim()}\n`;
  });
  return texts.sort().join('\n\n');
}
