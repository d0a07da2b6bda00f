/** Installs packages and builds dist and build if they are missing or stale, with nothing but Node: every npm script starts here. */
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

/** Installs the locked packages, unless they are there. */
export async function ensureInstalled() {
  if (installed()) return;
  console.error('holdfast: installing packages (npm ci) ...');
  const { npm } = await import('./npm.mjs');
  const { status, error } = npm(['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'], root);
  if (status !== 0) throw new Error(`npm ci failed${error ? `: ${error.message}` : ''}. Is the network there?`);
}

/**
 * Builds from src, unless that was done from just these sources: dist, which users run, with the types; and build, the same module
 * by module, for tests and benches of single modules.
 * With `tolerant`, type errors are printed and the emitted files are used: the type check is a test of its own.
 */
export async function ensureBuilt({ tolerant = false } = {}) {
  const folders = ['build', 'dist'];
  const fingerprintFile = (folder) => join(root, folder, '.built-from');
  const fingerprint = hashSources();
  if (folders.every((folder) => readText(fingerprintFile(folder)) === fingerprint)) return;
  console.error('holdfast: building ...');
  const fresh = join(root, `.build-${process.pid}`);
  try {
    const [{ bundle }, { bundleTypes }] = await Promise.all([import('./bundle.mjs'), import('./bundle-types.mjs')]);
    // Both have ended before their files are moved or removed.
    const bundling = bundle(root, join(fresh, 'dist')).catch((error) => error);
    const [status, fault] = await Promise.all([compile(fresh), bundling]);
    if (fault) throw fault;
    if (status !== 0 && !(tolerant && fs.existsSync(join(fresh, 'build')))) throw new Error('The build failed.');
    bundleTypes(join(fresh, 'types'), join(fresh, 'dist'));
    for (const folder of folders) {
      fs.rmSync(fingerprintFile(folder), { force: true });
      replaceFiles(join(fresh, folder), join(root, folder));
    }
    if (status === 0) for (const folder of folders) fs.writeFileSync(fingerprintFile(folder), fingerprint);
  } finally {
    fs.rmSync(fresh, { recursive: true, force: true });
  }
}

async function compile(fresh) {
  const [{ spawn }, { once }] = await Promise.all([import('node:child_process'), import('node:events')]);
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const folders = ['--outDir', join(fresh, 'build'), '--declarationDir', join(fresh, 'types')];
  const child = spawn(process.execPath, [compiler, '-p', 'tsconfig.build.json', ...folders], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
  const [status] = await once(child, 'close');
  return status;
}

/** npm writes the hidden lock file last, so a package that it names with the right contents is installed. */
function installed() {
  const present = packagesIn(join(root, 'node_modules', '.package-lock.json'));
  if (!present) return false;
  return Object.entries(packagesIn(join(root, 'package-lock.json')) ?? {}).every(([path, wanted]) => {
    if (path === '') return true;
    const found = present[path];
    if (!found) return wanted.optional === true;
    const same = found.version === wanted.version && (!wanted.integrity || found.integrity === wanted.integrity);
    return same && fs.existsSync(join(root, path));
  });
}

function packagesIn(lockFile) {
  const text = readText(lockFile);
  return text === undefined ? undefined : JSON.parse(text).packages;
}

function hashSources() {
  const hash = createHash('sha256');
  const scripts = ['scripts/bundle.mjs', 'scripts/bundle-types.mjs'];
  const settings = ['tsconfig.json', 'tsconfig.build.json', ...scripts, 'package.json', 'package-lock.json'];
  const sources = filesUnder(join(root, 'src')).filter((file) => !file.endsWith('.test.ts'));
  for (const file of [...sources.map((file) => join('src', file)), ...settings]) {
    hash
      .update(`${file}\0`)
      .update(fs.readFileSync(join(root, file)))
      .update('\0');
  }
  return hash.digest('hex');
}

/** File by file and by rename: a server or a test that runs from dist meanwhile never reads half a file. */
function replaceFiles(from, to) {
  const wanted = new Set(filesUnder(from));
  for (const file of wanted) {
    const target = join(to, file);
    if (readText(target) === readText(join(from, file))) continue;
    fs.mkdirSync(join(target, '..'), { recursive: true });
    fs.renameSync(join(from, file), target);
  }
  for (const file of fs.existsSync(to) ? filesUnder(to) : []) {
    if (!wanted.has(file)) fs.rmSync(join(to, file), { force: true });
  }
}

function filesUnder(folder) {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath ?? entry.path, entry.name)))
    .sort();
}

function readText(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}
