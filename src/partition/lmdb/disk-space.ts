/** How much disk space commits may take, estimated from above. */
import { COUNTER_BYTES, type Commit, type Write } from '../partition.ts';
import { PAGE_BYTES } from './files.ts';

/** A row may lie on a page of its own, which a checkpoint copies with its parent. */
const PAGES_PER_ROW = 2;
/** The upper levels of the trees, the list of free pages, and what the engine itself remembers. */
const PAGES_PER_CHECKPOINT = 32;
const LOGGED_PER_ROW = 32;

/** Pages of LMDB's file that a checkpoint may need for this row; undefined: the row is removed. */
export function pagesFor(valueBytes: number | undefined): number {
  return PAGES_PER_ROW + (valueBytes === undefined ? 0 : Math.ceil((valueBytes + 64) / PAGE_BYTES));
}

/** What a checkpoint of so many pages may add to LMDB's file. */
export function checkpointBytes(pages: number): number {
  return pages === 0 ? 0 : (PAGES_PER_CHECKPOINT + pages) * PAGE_BYTES;
}

/** What these commits may add to the log and, later, to LMDB's file. */
export function growthOf(commits: readonly Commit[]): number {
  let pages = PAGES_PER_CHECKPOINT;
  let logged = 0;
  for (const commit of commits) {
    for (const { writes } of commit.bodies) {
      for (const write of writes) {
        pages += pagesFor(write.kind === 'remove' ? undefined : valueBytesOf(write));
        logged += loggedBytes(write);
      }
    }
  }
  return pages * PAGE_BYTES + logged;
}

export function loggedBytesOf({ bodies }: Commit): number {
  let bytes = 0;
  for (const { writes } of bodies) for (const write of writes) bytes += loggedBytes(write);
  return bytes;
}

function loggedBytes(write: Write): number {
  return LOGGED_PER_ROW + write.key.length + valueBytesOf(write);
}

function valueBytesOf(write: Write): number {
  return write.kind === 'put' ? write.value.length : write.kind === 'add' ? COUNTER_BYTES : 0;
}

/** On a full disk only commits that give space back go on: no fewer rows are removed than written, counters aside. */
export function frees({ bodies }: Commit): boolean {
  const writes = bodies.flatMap((body) => body.writes).filter(({ kind }) => kind !== 'add');
  const removed = writes.filter(({ kind }) => kind === 'remove').length;
  return removed > 0 && removed * 2 >= writes.length;
}
