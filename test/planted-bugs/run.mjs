/**
 * npm run test:planted-bugs -- [words of a name]: plants each known bug in a copy of the repository and runs the tests that guard
 * against it. A bug that they do not find is a failure.
 */
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { plantedBugs } from './bugs.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const copied = [
  'src',
  'test',
  'scripts',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'vitest.config.ts',
];
const wanted = process.argv.slice(2).join(' ');
const chosen = plantedBugs.filter(({ name }) => name.includes(wanted));

const folder = mkdtempSync(join(tmpdir(), 'holdfast-planted-bugs-'));
let missed = 0;
try {
  for (const entry of copied) cpSync(join(root, entry), join(folder, entry), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');

  // A test that fails without any bug would seem to find every one.
  const all = [...new Set(chosen.flatMap(({ tests }) => tests.filter((word) => word.endsWith('.test.ts'))))];
  console.log(`without a bug: ${all.length} test files ...`);
  const { code, output } = await runTests(all);
  if (code !== 0) throw new Error(`The tests fail without any bug:\n${output.slice(-3_000)}`);

  for (const [index, bug] of chosen.entries()) {
    const found = await isFound(bug);
    if (!found) missed++;
    console.log(`${index + 1}/${chosen.length} ${found ? 'found ' : 'MISSED'} ${bug.name}`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(`${chosen.length - missed} found, ${missed} missed`);
process.exitCode = missed === 0 && chosen.length > 0 ? 0 : 1;

async function isFound({ name, file, find, replace, tests }) {
  const path = join(folder, file);
  const source = readFileSync(path, 'utf8');
  if (source.split(find).length !== 2) throw new Error(`${name}: its text does not occur exactly once in ${file}.`);
  writeFileSync(
    path,
    source.replace(find, () => replace),
  );
  try {
    const { code, output } = await runTests(tests);
    // A failure for another reason, such as a type error or no test at all, proves nothing.
    if (code !== 0 && !/Tests .*failed/.test(output)) throw new Error(`${name}: no test ran:\n${output.slice(-3_000)}`);
    return code !== 0;
  } finally {
    writeFileSync(path, source);
  }
}

function runTests(vitestArguments) {
  return new Promise((resolve) => {
    const vitest = join(folder, 'node_modules', 'vitest', 'vitest.mjs');
    const child = spawn(process.execPath, [vitest, 'run', '--bail=1', '--no-color', ...vitestArguments], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NO_COLOR: '1' },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    child.on('close', (code) => resolve({ code, output }));
  });
}
