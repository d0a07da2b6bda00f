/**
 * A real ext4 on a loop device. Its power can be cut: data that the file system had not sent to the device by then is lost, as with a
 * machine that loses its power. A failing disk can also refuse writes. Only for root on Linux.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { debianPython } from '../../scripts/debian-packages.mjs';

const COPIES_MAX = 20;
const program = fileURLToPath(new URL('failing-disk.py', import.meta.url));

/** Why no disk can be made here; undefined: one can. @param {{ failing?: boolean }} [options] */
export async function noLoopDisk(options) {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'a loop device can be mounted only by root on Linux';
  try {
    await (await newLoopDisk(16, options)).remove();
    return undefined;
  } catch (error) {
    return `no ext4 can be mounted here: ${/** @type {Error} */ (error).message}`;
  }
}

/** @typedef {{ pid: number, signal: (name: NodeJS.Signals) => void, kill: (name: NodeJS.Signals) => Promise<unknown> }} Server */

/**
 * @param {number} megabytes
 * @param {{ failing?: boolean }} options `failing`: through a file system of its own that can refuse writes
 */
export async function newLoopDisk(megabytes, { failing = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-loop-'));
  const image = join(folder, 'image');
  const mounted = join(folder, 'mounted');
  const disk = join(folder, 'disk');
  const failure = join(folder, 'failing');
  for (const each of [mounted, disk]) mkdirSync(each);
  writeFileSync(image, '');
  truncateSync(image, megabytes * 2 ** 20);
  let between = () => {};

  async function attach() {
    if (!failing) return must('mount', '-o', 'loop', image, mounted);
    const child = spawn(debianPython, [program, disk, image, failure], { stdio: ['ignore', 'ignore', 'inherit'] });
    between = () => void child.kill('SIGKILL');
    for (let tries = 0; !existsSync(join(disk, 'disk')); tries++) {
      if (child.exitCode !== null || tries > 100) throw new Error('the file system of the failing disk did not start');
      await pause(50);
    }
    must('mount', '-o', 'loop', join(disk, 'disk'), mounted);
  }

  function detach() {
    must('umount', '--lazy', mounted);
    if (failing) must('umount', '--lazy', disk);
    between();
  }

  try {
    // Nothing is left for the kernel to initialise in the background: it would write while the image is copied.
    must('mkfs.ext4', '-q', '-E', 'lazy_itable_init=0,lazy_journal_init=0', image);
    await attach();
  } catch (error) {
    between();
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }

  return {
    location: join(mounted, 'data'),

    /** Whether writes that reach the disk fail from now on. @param {boolean} isFailing */
    setFailing(isFailing) {
      if (isFailing) writeFileSync(failure, '');
      else rmSync(failure);
    },

    /** Cuts the power, and mounts the disk again. A server is stopped first: it acknowledges nothing after the cut. @param {Server} [server] */
    async cutPower(server) {
      server?.signal('SIGSTOP');
      const cut = join(folder, 'cut');
      copyWhileStill(image, cut);
      await server?.kill('SIGKILL');
      detach();
      renameSync(cut, image);
      await attach();
    },

    remove() {
      detach();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * The kernel may write pages back at any time, and an image of two moments is one that no power cut leaves.
 * @param {string} from
 * @param {string} to
 */
function copyWhileStill(from, to) {
  for (let copies = 0; copies < COPIES_MAX; copies++) {
    const { mtimeNs } = statSync(from, { bigint: true });
    must('cp', '--sparse=always', from, to);
    if (statSync(from, { bigint: true }).mtimeNs === mtimeNs) return;
  }
  throw new Error('the disk never stood still');
}

/** @param {string} command @param {...string} words */
function must(command, ...words) {
  const { status, stderr, error } = spawnSync(command, words, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command}: ${error?.message ?? stderr.trim()}`);
}
