/** How much disk space commits may take, estimated from above. */
import { COUNTER_BYTES, type Commit, type Write } from '../partition.ts';
import { KEY_BYTES_MAX, PAGE_BYTES } from './files.ts';

/** A row may lie on a page of its own, which a checkpoint copies with its parent. */
const PAGES_PER_ROW = 2;
/** The upper levels of the trees, the list of free pages, and what the engine itself remembers. */
const PAGES_PER_CHECKPOINT = 32;
const BYTES_PER_ROW = 32;

/** What a checkpoint of some rows may add to LMDB's file. */
export class SizeEstimate {
  private pages = 0;
  private bytes = 0;

  /** @param valueBytes undefined: the row is removed */
  add(keyBytes: number, valueBytes: number | undefined): this {
    this.pages += PAGES_PER_ROW + (valueBytes === undefined ? 0 : Math.ceil((valueBytes + 64) / PAGE_BYTES));
    this.bytes += BYTES_PER_ROW + keyBytes + (valueBytes ?? 0);
    return this;
  }

  addAll(commits: readonly Commit[]): this {
    for (const { writeSets } of commits) {
      for (const { writes } of writeSets) for (const write of writes) this.add(write.key.length, valueBytesOf(write));
    }
    return this;
  }

  /** @param used a transaction copies each page that is in use once; new ones are at least half full */
  bytesMax(used = Infinity): number {
    if (this.pages === 0) return 0;
    return PAGES_PER_CHECKPOINT * PAGE_BYTES + Math.min(this.pages * PAGE_BYTES, used + 2 * this.bytes);
  }
}

/** What a commit adds to the log. Throws a RangeError if a key is too long: LMDB would refuse it in the middle of a checkpoint. */
export function walBytes(commit: Commit): number {
  let bytes = 0;
  for (const { writes } of commit.writeSets) {
    for (const write of writes) {
      const keyBytes = write.key.length;
      if (keyBytes > KEY_BYTES_MAX) throw new RangeError(`a key of ${keyBytes} bytes`);
      bytes += BYTES_PER_ROW + keyBytes + (valueBytesOf(write) ?? 0);
    }
  }
  return bytes;
}

/** On a full disk only commits that give space back go on: no fewer rows are removed than written, counters aside. */
export function freesSpace(commit: Commit): boolean {
  const writes = commit.writeSets.flatMap((body) => body.writes).filter(({ kind }) => kind !== 'add');
  const removed = writes.filter(({ kind }) => kind === 'remove').length;
  return removed > 0 && removed * 2 >= writes.length;
}

function valueBytesOf(write: Write): number | undefined {
  return write.kind === 'put' ? write.value.length : write.kind === 'add' ? COUNTER_BYTES : undefined;
}
