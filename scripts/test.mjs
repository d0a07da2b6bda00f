/** node scripts/test.mjs [--quick] [vitest's arguments]: types, lint and all tests, with one summary as the last line. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureAzurite } from './azurite.mjs';
import { ensureDebianPackages } from './debian-packages.mjs';
import { ensureInstalled, root } from './prepare.mjs';
import { quickExcludes } from './quick.mjs';
import { summarise } from './summary.mjs';

const SLOWEST_COUNT = 5;

const words = process.argv.slice(2);
const quick = words.includes('--quick');
const vitestArguments = words.filter((word) => word !== '--quick');
const results = { passed: 0, failed: [], skipped: [] };

try {
  await ensureInstalled();
  if (!quick) {
    ensureDebianPackages();
    ensureAzurite();
  }
  step('type check', 'typescript/bin/tsc', '--noEmit', '-p', 'tsconfig.json');
  step('lint', '@biomejs/biome/bin/biome', 'ci', '--colors=off');
  runTests();
} catch (error) {
  results.failed.push(error.message);
}
const allowed = JSON.parse(readFileSync(join(root, 'scripts', 'allowed-skips.json'), 'utf8'));
const { lines, ok } = summarise(results, allowed, process.env.CI === 'true');
console.log(`\n${lines.join('\n')}`);
process.exitCode = ok ? 0 : 1;

function step(name, tool, ...words) {
  console.log(`\n${name}`);
  if (node(tool, words) === 0) results.passed++;
  else results.failed.push(name);
}

function runTests() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'));
  const report = join(folder, 'report.json');
  try {
    // A new process for each file would take most of the minute.
    const quickArguments = quick ? ['--no-isolate', ...quickExcludes.map((pattern) => `--exclude=${pattern}`)] : [];
    const status = node('vitest/vitest.mjs', ['run', ...quickArguments, ...vitestArguments], {
      HOLDFAST_TEST_REPORT: report,
      ...(quick && { HOLDFAST_TEST_ON_POSTGRES: 'nothing' }),
    });
    const outcome = readReport(report);
    if (outcome) {
      results.passed += outcome.passed;
      results.failed.push(...outcome.failed);
      results.skipped.push(...outcome.skipped);
      if (quick) printSlowest(outcome.files);
    }
    if (status !== 0 && !outcome?.failed.length) results.failed.push(`vitest ended with ${status ?? 'a signal'}`);
    else if (!outcome) results.failed.push('vitest left no report');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** So that a file that grew slow is noticed, and leaves the quick run. */
function printSlowest(files) {
  const slowest = files.sort((one, other) => other.milliseconds - one.milliseconds).slice(0, SLOWEST_COUNT);
  const seconds = (milliseconds) => `${(milliseconds / 1_000).toFixed(1)} s`.padStart(8);
  console.log(`\nslowest files\n${slowest.map((each) => `${seconds(each.milliseconds)}  ${each.file}`).join('\n')}`);
}

function readReport(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

function node(tool, words, env = {}) {
  const { status } = spawnSync(process.execPath, [join(root, 'node_modules', tool), ...words], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, ...env },
  });
  return status;
}
