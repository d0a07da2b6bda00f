/** A cgroup that limits the memory of its processes, page cache included. Versions 1 and 2. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = '/sys/fs/cgroup';

/**
 * @typedef {object} MemoryUse
 * @property {number} peak the most that the group has used, page cache included
 * @property {number} anonymous what its processes hold now, page cache left out
 * @property {number} limitHits how often the limit was met and the kernel had to make room
 * @property {number} kills how many processes it ended because it could not
 */

const version1 = {
  root: join(ROOT, 'memory'),
  limit: 'memory.limit_in_bytes',
  swap: 'memory.swappiness',
  /** @param {(file: string) => string} read @returns {MemoryUse} */
  use: (read) => ({
    peak: Number(read('memory.max_usage_in_bytes')),
    anonymous: fieldIn(read('memory.stat'), 'total_rss'),
    limitHits: Number(read('memory.failcnt')),
    kills: fieldIn(read('memory.oom_control'), 'oom_kill'),
  }),
};

const version2 = {
  root: ROOT,
  limit: 'memory.max',
  swap: 'memory.swap.max',
  /** @param {(file: string) => string} read @returns {MemoryUse} */
  use: (read) => ({
    peak: Number(read('memory.peak')),
    anonymous: fieldIn(read('memory.stat'), 'anon'),
    limitHits: fieldIn(read('memory.events'), 'max'),
    kills: fieldIn(read('memory.events'), 'oom_kill'),
  }),
};

/**
 * @param {number} bytes
 * @returns {{ fault: string } | { before: string[], use(): MemoryUse, remove(): void }} `before` is a command that runs
 *   another in the group
 */
export function memoryGroup(bytes) {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return { fault: 'a cgroup can be made only by root on Linux' };
  const version = existsSync(version1.root) ? version1 : version2;
  const group = join(version.root, `holdfast-${process.pid}`);
  try {
    if (version === version2) writeFileSync(join(ROOT, 'cgroup.subtree_control'), '+memory');
    mkdirSync(group);
    writeFileSync(join(group, version.limit), String(bytes));
    // Nothing is to be swapped out; where there is no swap, there may be no such file.
    if (existsSync(join(group, version.swap))) writeFileSync(join(group, version.swap), '0');
    version.use((file) => readFileSync(join(group, file), 'utf8'));
  } catch (error) {
    if (existsSync(group)) rmdirSync(group);
    return { fault: `this machine gives no cgroup for memory (${/** @type {Error} */ (error).message})` };
  }
  return {
    before: ['sh', '-c', 'echo $$ > "$0" && exec "$@"', join(group, 'cgroup.procs')],
    use: () => version.use((file) => readFileSync(join(group, file), 'utf8')),
    remove: () => rmdirSync(group),
  };
}

/** @param {string} text lines of names and numbers @param {string} name */
function fieldIn(text, name) {
  const found = new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1];
  if (found === undefined) throw new Error(`it says nothing of ${name}`);
  return Number(found);
}
