/** Cached directory listing, read again when the folder's modification time has changed. */
import { readdir, stat } from 'node:fs/promises';

interface Listing {
  readonly names: readonly string[];
  /** The folder's modification time. */
  readonly changed: bigint;
  /** When that time was first seen, and when the names were read, by `performance.now`. */
  readonly seenAt: number;
  readonly readAt: number;
}

/** Changes within one tick of the file system's clock have the same time; the coarsest ticks are two seconds long. */
const TICK_MILLISECONDS = 2_500;
/** A listing is read again after this time: not every file system maintains modification times. */
const CACHE_MILLISECONDS = 60_000;

/** @param onRead called with the names whenever they were read */
export function makeFolderLister(
  folder: string,
  onRead: (names: readonly string[]) => void,
): () => Promise<readonly string[]> {
  let last: Listing | undefined;
  return async () => {
    const { mtimeNs: changed } = await stat(folder, { bigint: true });
    const now = performance.now();
    if (last && last.changed === changed && isFinal(last) && now - last.readAt < CACHE_MILLISECONDS) return last.names;
    const entries = await readdir(folder, { withFileTypes: true });
    const names = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
    const seenAt = last?.changed === changed ? last.seenAt : now;
    last = { names, changed, seenAt, readAt: now };
    onRead(names);
    return names;
  };
}

/** Whether a change after the names were read must change the folder's time. */
function isFinal({ seenAt, readAt }: Listing): boolean {
  return readAt - seenAt >= TICK_MILLISECONDS;
}
