/** Runs a suite of smbtorture against a server. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';

/** @typedef {'passed' | 'failed' | 'skipped'} Outcome */
/** @typedef {{ outcomes: Map<string, Outcome>, reasons: Map<string, string>, timedOut: boolean, output: string }} SuiteResult */

export const noTorture =
  spawnSync('smbtorture', ['--version'], { stdio: 'ignore' }).status === 0
    ? undefined
    : 'smbtorture is not installed from Debian (samba-testsuite)';

/**
 * @param {import('../support/smb-target.mjs').SmbTarget} target
 * @param {import('./suites.mjs').Suite} suite or a single subtest
 * @param {readonly string[]} [flags]
 * @returns {Promise<SuiteResult>}
 */
export async function runSuite({ port, share, user, password }, { name, seconds }, flags = []) {
  const address = [`//127.0.0.1/${share}`, '-p', String(port), '-U', `${user}%${password}`];
  const child = spawn('smbtorture', [...address, '--format=subunit', ...flags, name], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let output = '';
  child.stdout.setEncoding('latin1').on('data', (text) => {
    output += text;
  });
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    child.kill('SIGKILL');
  }, seconds * 1_000);
  await once(child, 'close');
  clearTimeout(timer);
  return { ...readSubunit(output, name), timedOut, output };
}

/** Of the words that end a test in subunit's text format. @type {Readonly<Record<string, Outcome>>} */
const OUTCOMES = {
  success: 'passed',
  failure: 'failed',
  error: 'failed',
  xfail: 'failed',
  skip: 'skipped',
};

/**
 * A subtest without an outcome has failed: the suite ended or was ended in it.
 * @param {string} text
 * @param {string} suite
 */
export function readSubunit(text, suite) {
  /** @type {Map<string, Outcome>} */
  const outcomes = new Map();
  /** @type {Map<string, string>} */
  const reasons = new Map();
  const fullName = (/** @type {string} */ name) => (suite.endsWith(`.${name}`) ? suite : `${suite}.${name}`);
  for (const match of text.matchAll(/^(test|success|failure|error|xfail|skip): (.+?)(?: \[\n([\s\S]*?)^\])?$/gm)) {
    const [, word = '', rest = '', reason] = match;
    const name = fullName(rest.replace(/ \[$/, ''));
    outcomes.set(name, OUTCOMES[word] ?? 'failed');
    if (word !== 'test' && reason) reasons.set(name, reason.trim());
  }
  return { outcomes, reasons };
}

/** @param {ReadonlyMap<string, Outcome>} outcomes */
export function countOutcomes(outcomes) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const outcome of outcomes.values()) counts[outcome]++;
  return counts;
}
