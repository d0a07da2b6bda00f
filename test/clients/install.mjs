/** Fetches clients from the registries of their languages, the newest releases, into `.cache` beside this file. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseJsonLines } from './results.mjs';
import { built, fetched, run, Unavailable } from './steps.mjs';

/** @typedef {{ version: string, command: string, folder: string, env?: Record<string, string> }} Tool */

const RELEASES_TRIED = 12;
const isWindows = process.platform === 'win32';
const probes = { go: 'version', java: '-version' };

export const here = fileURLToPath(new URL('.', import.meta.url));
export const cache = join(here, '.cache');

/** @param {readonly string[]} toolchains */
export async function checkToolchains(toolchains) {
  for (const name of toolchains) {
    const { status } = await run(name, [probes[/** @type {keyof typeof probes} */ (name)] ?? '--version'], {});
    if (status !== 0) throw new Unavailable(`${name} is not installed`);
  }
}

/** A folder of the cache, with the sources that are beside this file, if any. @param {string} name */
function folderOf(name) {
  const folder = join(cache, name);
  mkdirSync(folder, { recursive: true });
  if (existsSync(join(here, name))) cpSync(join(here, name), folder, { recursive: true, preserveTimestamps: true });
  return folder;
}

/** @param {string} environment clients in one virtual environment must agree on their dependencies @param {readonly [string, ...string[]]} packages */
export async function pip(environment, packages) {
  const folder = folderOf(environment);
  const programs = join(folder, isWindows ? 'Scripts' : 'bin');
  const command = join(programs, 'python');
  if (!existsSync(programs)) await fetched('python3', ['-m', 'venv', folder], { cwd: cache });
  await fetched(command, ['-m', 'pip', 'install', '--quiet', '--upgrade', ...packages], { cwd: folder, minutes: 20 });
  const version = `import importlib.metadata as each; print(each.version('${packages[0]}'))`;
  return { version: (await built(command, ['-c', version], { cwd: folder })).trim(), command, folder };
}

/** @param {string} name the program @param {string} wanted @param {string} program its path in the package */
export async function npm(name, wanted, program) {
  const folder = folderOf(name);
  const words = ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error', '--prefix', folder];
  await fetched('npm', [...words, `${wanted}@latest`], { cwd: folder });
  const found = join(folder, 'node_modules', wanted);
  const { version } = JSON.parse(readFileSync(join(found, 'package.json'), 'utf8'));
  return { version, command: join(found, program), folder };
}

/** Shared libraries of Debian that a program needs, unpacked without root. @param {string} folder @param {readonly string[]} packages */
export async function debianLibraries(folder, packages) {
  const into = join(folder, 'debian');
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });
  await fetched('apt-get', ['download', '--quiet', ...packages], { cwd: into });
  for (const file of readdirSync(into)) await fetched('dpkg-deb', ['-x', file, '.'], { cwd: into });
  const libraries = join(into, 'usr', 'lib');
  return readdirSync(libraries).map((machine) => join(libraries, machine));
}

/** The program of go/, with the newest SDK. @param {string} name @param {string} module */
export async function goProgram(name, module) {
  const folder = folderOf(name);
  const options = { cwd: folder, minutes: 20 };
  return await newestOf(module, options, async (version) => {
    await fetched('go', ['get', `${module}@${version}`], options);
    await fetched('go', ['mod', 'tidy'], options);
    await built('go', ['build', '-o', 'client', '.'], options);
    return { version, command: join(folder, 'client'), folder };
  });
}

/** The tests of a package of a Go module, as a program. @param {string} name @param {string} module @param {string} tested */
export async function goTests(name, module, tested) {
  const folder = folderOf(name);
  const command = join(folder, `${name}.test`);
  return await newestOf(module, { cwd: folder }, async (version) => {
    const { Dir } = JSON.parse(
      await fetched('go', ['mod', 'download', '-json', `${module}@${version}`], { cwd: folder }),
    );
    await fetched('go', ['test', '-c', '-o', command, `./${tested}`], { cwd: Dir, minutes: 30 });
    return { version, command, folder: join(Dir, tested) };
  });
}

/**
 * A module proxy need not have the dependencies of the newest release.
 * @param {string} module @param {import('./steps.mjs').StepOptions} options @param {(version: string) => Promise<Tool>} attempt
 */
async function newestOf(module, options, attempt) {
  const listed = await fetched('go', ['list', '-m', '-versions', module], options);
  const [, ...versions] = listed.trim().split(' ');
  const releases = versions.filter((version) => !version.includes('-')).reverse();
  let refusal;
  for (const version of releases.slice(0, RELEASES_TRIED)) {
    try {
      return await attempt(version);
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      refusal ??= error;
    }
  }
  throw refusal ?? new Unavailable(`There is no release of ${module}.`);
}

/** The program of a folder beside this file. @param {string} name @param {string} dependency whose version counts */
export async function cargoProgram(name, dependency) {
  const folder = folderOf(name);
  const options = { cwd: folder, minutes: 30 };
  const { version } = await cargoPackage(dependency, options);
  await built('cargo', ['build', '--quiet'], options);
  return { version, command: join(folder, 'target', 'debug', 'holdfast-client'), folder };
}

/** A crate's own tests, built from its published sources. @param {string} crate @param {string} feature */
export async function cargoTests(crate, feature) {
  const folder = folderOf(join(crate, 'newest'));
  const manifest = '[package]\nname = "newest"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "newest.rs"\n';
  writeFileSync(join(folder, 'Cargo.toml'), `${manifest}[dependencies]\n${crate} = "*"\n`);
  writeFileSync(join(folder, 'newest.rs'), '');
  const { version, manifest_path: published } = await cargoPackage(crate, { cwd: folder });
  const source = join(cache, crate, version);
  if (!existsSync(source)) cpSync(dirname(published), source, { recursive: true, preserveTimestamps: true });
  const words = ['test', '--quiet', '--lib', '--features', feature, '--no-run', '--message-format=json'];
  const printed = await fetched('cargo', words, { cwd: source, minutes: 40 });
  const programs = parseJsonLines(printed).map((/** @type {any} */ line) => line.executable);
  return { version, command: programs.findLast((each) => typeof each === 'string'), folder: source };
}

/** @param {string} name @param {import('./steps.mjs').StepOptions} options @returns {Promise<{ version: string, manifest_path: string }>} */
async function cargoPackage(name, options) {
  await fetched('cargo', ['update', '--quiet'], options);
  await fetched('cargo', ['fetch', '--quiet'], options);
  const { packages } = JSON.parse(await built('cargo', ['metadata', '--format-version=1', '--quiet'], options));
  return packages.find((/** @type {{ name: string }} */ each) => each.name === name);
}

/** @param {string} name @param {string} artifact whose version counts */
export async function maven(name, artifact) {
  const folder = folderOf(name);
  const words = ['--quiet', '--batch-mode', '--update-snapshots', 'dependency:build-classpath'];
  rmSync(join(folder, 'classpath'), { force: true });
  await fetched('mvn', [...words, '-Dmdep.outputFile=classpath'], { cwd: folder, minutes: 10 });
  const classpath = readFileSync(join(folder, 'classpath'), 'utf8').trim();
  const version = new RegExp(`${artifact}-([\\d.]+\\d)`).exec(classpath)?.[1] ?? '?';
  return { version, command: 'java', folder, env: { CLASSPATH: classpath } };
}
