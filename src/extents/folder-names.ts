/** The names of the files in a folder, read again when the folder has changed. */
import { readdir, stat } from 'node:fs/promises';

interface Listing {
  readonly names: readonly string[];
  /** When the folder last changed, by its own time. */
  readonly changed: bigint;
  /** When that was seen for the first time, and when the names were read, by ours. */
  readonly seenAt: number;
  readonly readAt: number;
}

/** Changes within one tick of the file system's clock look like one; the coarsest ticks are two seconds long. */
const TICK_MILLISECONDS = 2_500;
/** Not all file systems can be relied on. */
const CACHE_MILLISECONDS = 60_000;

/** @param onRead is told the names whenever they were read */
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

/** Whether a file that was made or removed after the names were read would show in the folder's time. */
function isFinal({ seenAt, readAt }: Listing): boolean {
  return readAt - seenAt >= TICK_MILLISECONDS;
}
