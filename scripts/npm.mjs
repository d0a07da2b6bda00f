import { spawnSync } from 'node:child_process';

/** The npm that runs this script, or else the one on the PATH. Prints to stderr. */
export function npm(words, cwd) {
  const script = process.env.npm_execpath ?? '';
  const stdio = ['ignore', 2, 2];
  // Windows starts npm.cmd only through a shell; the script that it wraps runs everywhere.
  return script.endsWith('npm-cli.js')
    ? spawnSync(process.execPath, [script, ...words], { cwd, stdio })
    : spawnSync('npm', words, { cwd, stdio, shell: process.platform === 'win32' });
}
