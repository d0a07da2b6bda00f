/** A server of its own process, as users run it, that a test can kill, stop or trace. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const cli = fileURLToPath(new URL('../../dist/bin/holdfast.js', import.meta.url));
/** The same, module by module. */
const modules = fileURLToPath(new URL('../../build/bin/holdfast.js', import.meta.url));
const LISTENING = /Azurite (\w+) service is successfully listening at (https?:\S+)\n/g;

/**
 * `before` is a command that runs the server, such as strace; `imports` are modules that Node loads first, and that may change others.
 * @typedef {{ flags?: string[], before?: string[], imports?: string[] }} LaunchOptions
 */

/**
 * @param {string} location the data folder
 * @param {LaunchOptions} options
 */
export function launch(location, { flags = [], before = [], imports = [] } = {}) {
  const first = imports.flatMap((module) => ['--import', module]);
  return run([
    ...before,
    process.execPath,
    ...first,
    imports.length > 0 ? modules : cli,
    'start',
    '--location',
    location,
    '--blobPort',
    '0',
    ...flags,
  ]);
}

/**
 * @param {string} location
 * @param {LaunchOptions} [options]
 */
export async function startServer(location, options) {
  const server = launch(location, options);
  const origin = await server.ready;
  if (!origin) throw new Error(`The server did not start: ${server.stderr()}`);
  return { ...server, origin };
}

/**
 * `holdfast check`, in a process of its own.
 * @param {string} location
 */
export async function checkFolder(location) {
  const program = run([process.execPath, cli, 'check', '--location', location]);
  const { code } = await program.ended;
  return { code, text: program.stdout() + program.stderr() };
}

/** @param {string[]} words */
export function run([file, ...words]) {
  const { npm_lifecycle_event: _, AZURITE_ACCOUNTS: __, ...env } = process.env;
  const child = spawn(/** @type {string} */ (file), words, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }));
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  /** The address of its blobs, or undefined if it ended before. @type {Promise<string | undefined>} */
  const ready = new Promise((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text) => {
      stdout += text;
      const { Blob: blob, Table: table, File: file } = originsIn(stdout);
      // Of the services it is the last to say so, if it listens at all.
      const last = stdout.includes('FileEndpoint=') ? file : table;
      if (last) resolve(blob);
    });
    void ended.then(() => resolve(undefined));
  });
  return {
    pid: /** @type {number} */ (child.pid),
    ready,
    ended,
    stdout: () => stdout,
    /** Where its services are, by their names: Blob, Queue, Table, File. */
    origins: () => originsIn(stdout),
    stderr: () => stderr,
    /** @param {NodeJS.Signals} signal */
    async kill(signal = 'SIGKILL') {
      child.kill(signal);
      return ended;
    },
    /** @param {NodeJS.Signals} name */
    signal: (name) => void child.kill(name),
  };
}

/**
 * @param {string} printed
 * @returns {Record<string, string | undefined>}
 */
function originsIn(printed) {
  return Object.fromEntries([...printed.matchAll(LISTENING)].map(([, service, origin]) => [service, origin]));
}
