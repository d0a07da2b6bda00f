/** Steps of fetching, building and running a client: a failure to fetch is a skip, not a failure. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseJsonLines } from './results.mjs';

const TAIL_LINES = 4;

/** The client cannot be had on this machine. */
export class Unavailable extends Error {}

/** @typedef {import('./results.mjs').Check} Check */
/** @typedef {{ cwd?: string, env?: Record<string, string>, minutes?: number }} StepOptions */

/**
 * Never waits synchronously: the server may be in this process.
 * @param {string} command @param {readonly string[]} words @param {StepOptions} options
 */
export async function run(command, words, { cwd, env = {}, minutes = 5 } = {}) {
  const child = spawn(command, words, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: minutes * 60_000,
    killSignal: 'SIGKILL',
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  const failed = new Promise((resolve) => child.once('error', resolve));
  const error = await Promise.race([failed, once(child, 'close')]);
  const status = error instanceof Error ? error.message : (child.exitCode ?? `ended by ${child.signalCode}`);
  return { status, stdout, stderr };
}

/** Tools and packages. @param {string} command @param {readonly string[]} words @param {StepOptions} options */
export async function fetched(command, words, options) {
  const { status, stdout, stderr } = await run(command, words, options);
  if (status !== 0) throw new Unavailable(`${command} ${words.join(' ')}: ${status}: ${tailOf(stderr || stdout)}`);
  return stdout;
}

/** @param {string} command @param {readonly string[]} words @param {StepOptions} options */
export async function built(command, words, options) {
  const { status, stdout, stderr } = await run(command, words, options);
  if (status !== 0) throw new Error(`${command} ${words.join(' ')}: ${status}: ${tailOf(stderr || stdout)}`);
  return stdout;
}

/**
 * A program that prints the results of its checks.
 * @param {string} command @param {readonly string[]} words
 * @param {StepOptions & { parse?: (printed: string) => Check[], failed?: readonly unknown[] }} options `failed`: statuses that only tell that a check failed
 * @returns {Promise<Check[]>}
 */
export async function checked(command, words, { parse = parseJsonLines, failed = [], ...options }) {
  const { status, stdout, stderr } = await run(command, words, options);
  const checks = parse(stdout);
  const isCounted = failed.includes(status) && checks.some(({ fault }) => fault !== undefined);
  if (status !== 0 && !isCounted)
    checks.push({ title: 'runs to its end', fault: `${status}: ${tailOf(stderr || stdout)}` });
  return checks;
}

/** @param {string} text */
function tailOf(text) {
  return text.trim().split('\n').slice(-TAIL_LINES).join(' | ');
}
