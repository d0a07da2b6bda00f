/** What commits take on disk. */
import { PAGE_BYTES } from './lmdb-files.ts';
import type { Judged } from './lmdb-parcel.ts';
import { COUNTER_BYTES } from './partition.ts';

const PAGES_PER_ROW = 2;
/** The upper levels of the trees, the list of free pages, and what the engine itself remembers. */
const PAGES_PER_COMMIT = 32;
const LOGGED_PER_ROW = 32;

export interface Growth {
  readonly rows: number;
  readonly bytes: number;
}

/** The most that they can take: every row may lie on a page of its own, which is copied with its parent; and the log. */
export function growthOf(commits: readonly Judged[]): Growth {
  let rows = 0;
  let pages = PAGES_PER_COMMIT;
  let logged = 0;
  for (const { bodies } of commits) {
    for (const { writes } of bodies) {
      rows += writes.length;
      for (const write of writes) {
        logged += LOGGED_PER_ROW + write.key.length;
        if (write.kind === 'remove') continue;
        const bytes = write.kind === 'put' ? write.value.length : COUNTER_BYTES;
        logged += bytes;
        pages += Math.ceil((bytes + 64) / PAGE_BYTES);
      }
    }
  }
  return { rows, bytes: (pages + PAGES_PER_ROW * rows) * PAGE_BYTES + logged };
}

/** On a full disk only what gives space back goes on: no fewer rows go than are written, counters aside. */
export function frees({ bodies }: Judged): boolean {
  const writes = bodies.flatMap((body) => body.writes).filter(({ kind }) => kind !== 'add');
  const removed = writes.filter(({ kind }) => kind === 'remove').length;
  return removed > 0 && removed * 2 >= writes.length;
}
