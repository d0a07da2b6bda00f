/**
 * npm run test:smbtorture [-- --only <pattern>,<pattern> --verbose --no-samba]: Samba's own test suites against Holdfast and, beside it, against
 * Samba. Fails if Samba passes a subtest that Holdfast does not pass, unless expected-failures.mjs has the reason.
 */
import { parseArgs } from 'node:util';
import { ensureDebianPackages } from '../../scripts/debian-packages.mjs';
import { startHoldfastSmb } from '../support/smb-target.mjs';
import { reasonsByTest } from './expected-failures.mjs';
import { suites } from './suites.mjs';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    samba: { type: 'boolean', default: true },
    holdfast: { type: 'boolean', default: true },
    verbose: { type: 'boolean', default: false },
    target: { type: 'string' },
  },
  allowNegative: true,
});

ensureDebianPackages();
// What is there is looked at when these are imported: after the installation.
const { noSamba, startSamba } = await import('../support/samba-server.mjs');
const { countOutcomes, noTorture, runSuite } = await import('./torture.mjs');
if (noTorture) throw new Error(noTorture);
if (values.samba && noSamba) console.log(`without Samba: ${noSamba}`);

const isBesideSamba = values.samba && !noSamba;
const starts = [...(values.holdfast ? [startHoldfastSmb] : []), ...(isBesideSamba ? [startSamba] : [])];
const flags = values.target === undefined ? [] : [`--target=${values.target}`];
const chosen = suites.filter(({ name }) => values.only.split(',').some((part) => name.includes(part)));
/** @type {Map<string, { ours?: string, sambas?: string, reason?: string }>} */
const subtests = new Map();
const worse = [];
let targets = await Promise.all(starts.map((start) => start()));
process.on('exit', () => {
  for (const { pid } of targets) if (pid) endProcess(pid);
});

console.log(['suite'.padEnd(30), ...targets.map(({ name }) => `${name}: pass fail skip`.padEnd(28))].join(''));
for (const suite of chosen) {
  const cells = [];
  for (const target of targets) {
    const result = await runSuite(target, suite, flags);
    for (const [name, outcome] of result.outcomes) {
      const known = subtests.get(name) ?? {};
      subtests.set(name, {
        ...known,
        ...(target.name === 'Samba'
          ? { sambas: outcome }
          : { ours: outcome, ...(result.reasons.has(name) && { reason: result.reasons.get(name) }) }),
      });
    }
    const { passed, failed, skipped } = countOutcomes(result.outcomes);
    const numbers = [passed, failed, skipped].map((count) => String(count).padStart(5)).join('');
    cells.push(`${' '.repeat(target.name.length)}${numbers}${result.timedOut ? ' timed out' : ''}`.padEnd(28));
  }
  console.log(suite.name.padEnd(30) + cells.join(''));
  targets = await restartDead(targets);
}

for (const [name, { ours, sambas, reason }] of [...subtests].sort()) {
  const expected = reasonsByTest.get(name);
  if (expected && ours === 'passed') worse.push(`${name} passes: expected-failures.mjs lists it as "${expected}"`);
  if (!values.holdfast || ours === 'passed' || (ours === 'skipped' && sambas !== 'passed')) continue;
  const how = `${name}: ${ours ?? 'not run'}, Samba ${sambas ?? 'not run'}`;
  if (sambas === 'passed' && !expected) worse.push(`${how}\n${values.verbose ? reason : firstLine(reason)}`);
  else console.log(`  ${how}${expected ? ` (${expected})` : ''}${values.verbose ? `\n${reason}` : ''}`);
}
if (isBesideSamba && ![...subtests.values()].some(({ sambas }) => sambas === 'passed'))
  worse.push('Samba passes nothing, so that there is nothing to compare with');
for (const line of worse) console.log(`worse than Samba: ${line}`);
const total = countOutcomes(new Map([...subtests].map(([name, { ours }]) => [name, /** @type {never} */ (ours)])));
console.log(
  `${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped; ${worse.length} worse than Samba`,
);
const [holdfast] = targets;
if (worse.length > 0 && holdfast?.name === 'Holdfast') console.log(holdfast.log().slice(-2_000));
await Promise.all(targets.map((target) => target.stop()));
targets = [];
process.exitCode = worse.length === 0 ? 0 : 1;

/** A server that a suite has ended is a finding, but no reason to lose the other suites. */
async function restartDead(all) {
  return Promise.all(
    all.map(async (target, index) => {
      if (isAlive(target.pid)) return target;
      worse.push(`${target.name} has ended:\n${target.log().slice(-2_000)}`);
      return starts[index]();
    }),
  );
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function endProcess(pid) {
  try {
    process.kill(pid);
  } catch {
    // It has ended by itself.
  }
}

function firstLine(text = '') {
  return `    ${text.split('\n')[0]}`;
}
