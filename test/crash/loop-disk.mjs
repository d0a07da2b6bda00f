/**
 * A real ext4 on a loop device, whose power can be cut: what the file system had not sent to the device by then is gone, as it
 * would be with a machine that lost its power. Root on Linux alone can do this.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const COPIES_MAX = 20;

/** Why no disk can be made here; undefined: one can. */
export function noLoopDisk() {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'a loop device can be mounted only by root on Linux';
  try {
    newLoopDisk(16).remove();
    return undefined;
  } catch (error) {
    return `no ext4 can be mounted here: ${/** @type {Error} */ (error).message}`;
  }
}

/** @param {number} megabytes */
export function newLoopDisk(megabytes) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-loop-'));
  const image = join(folder, 'image');
  const mounted = join(folder, 'mounted');
  mkdirSync(mounted);
  writeFileSync(image, '');
  truncateSync(image, megabytes * 2 ** 20);
  try {
    // Nothing is left for the kernel to initialise in the background: it would write while the image is copied.
    must('mkfs.ext4', '-q', '-E', 'lazy_itable_init=0,lazy_journal_init=0', image);
    must('mount', '-o', 'loop', image, mounted);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
  return {
    location: join(mounted, 'data'),

    /**
     * Cuts the power, and mounts what is left. The server is stopped first, so that nothing is acknowledged after the cut.
     * @param {{ pid: number, signal: (name: NodeJS.Signals) => void, kill: (name: NodeJS.Signals) => Promise<unknown> }} server
     */
    async cutPower(server) {
      server.signal('SIGSTOP');
      const cut = join(folder, 'cut');
      copyWhileStill(image, cut);
      await server.kill('SIGKILL');
      must('umount', mounted);
      renameSync(cut, image);
      must('mount', '-o', 'loop', image, mounted);
    },

    remove() {
      must('umount', '--lazy', mounted);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The kernel may write pages back at any time, and an image of two moments is one that no power cut leaves. @param {string} from @param {string} to */
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
