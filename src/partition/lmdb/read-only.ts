/** Read-only access while another process may write: its last checkpoint, with the segments of its log as generations over it. */
import { statSync } from 'node:fs';
import { later, startClock } from '../clock.ts';
import { type Engine, Unavailable } from '../partition.ts';
import { CorruptionError } from './corruption.ts';
import { openFiles, readMeta } from './files.ts';
import { CheckpointState, LayeredView, makeSnapshot } from './reads.ts';
import { loadGeneration, readSegmentsAfter } from './segments.ts';
import { VolatileRows } from './volatile-rows.ts';
import { SLOTS, segmentFile } from './wal.ts';

/** A record that is just being written looks damaged; corruption is still there at the last attempt. */
const ATTEMPTS_MAX = 5;
/** Coarser than any file system's modification times. */
const QUIET_MILLISECONDS = 1_000;

/** They are in the memory of the process that writes. */
const NO_VOLATILE_ROWS = new VolatileRows();

type LoadedSegment = ReturnType<typeof loadGeneration>;

export function openLmdbReadOnly(location: string): Engine {
  const { environment, rows, meta } = openFiles(location, { readOnly: true });

  let cached: { readonly applied: number; readonly fingerprint: string; readonly loaded: LoadedSegment[] } | undefined;

  /** A log without writes is read once: a scan of all rows takes many snapshots. */
  function load(applied: number): LoadedSegment[] | CorruptionError {
    const fingerprint = walFingerprint(location);
    if (cached?.applied === applied && cached.fingerprint === fingerprint) return cached.loaded;
    try {
      const loaded = readSegmentsAfter(applied, location).map(loadGeneration);
      cached = fingerprint === undefined ? undefined : { applied, fingerprint, loaded };
      return loaded;
    } catch (error) {
      if (error instanceof CorruptionError) return error;
      throw error;
    }
  }

  /** One committed state, with every commit acknowledged before this call. */
  function openView() {
    for (let damaged = 0; ; ) {
      const checkpoint = new CheckpointState(rows);
      const applied = Number(readMeta(meta, 'applied', checkpoint.transaction));
      const loaded = load(applied);
      // A segment that was checkpointed meanwhile may have been overwritten while it was read.
      rows.resetReadTxn();
      const isCurrent = readMeta(meta, 'applied') === BigInt(applied);
      if (isCurrent && !(loaded instanceof CorruptionError)) {
        const generations = loaded.map(({ generation }) => generation).reverse();
        const until = loaded.map((each) => each.until).reduce(later, readMeta(meta, 'high-water'));
        return { view: new LayeredView(generations, checkpoint, NO_VOLATILE_ROWS, 0), until };
      }
      checkpoint.release();
      if (isCurrent && ++damaged >= ATTEMPTS_MAX) throw loaded;
    }
  }

  const { view, until } = openView();
  view.release();
  const clock = startClock({ atLeast: until });
  return {
    clock,
    snapshot: () => makeSnapshot(openView().view, clock.now()),
    commit: async () => {
      throw new Unavailable('These rows were opened to be read only.');
    },
    close: () => environment.close(),
  };
}

/** undefined: the last write is so recent that a further one might not change the modification times. */
function walFingerprint(location: string): string | undefined {
  const times = SLOTS.map((slot) => statSync(segmentFile(location, slot), { throwIfNoEntry: false })?.mtimeMs ?? 0);
  return times.every((time) => Math.abs(Date.now() - time) > QUIET_MILLISECONDS) ? times.join() : undefined;
}
