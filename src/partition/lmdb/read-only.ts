/** The rows to look at, while another process may write them: its last checkpoint, and above it what its log holds. */
import { statSync } from 'node:fs';
import { startClock } from '../clock.ts';
import { type Engine, Unavailable } from '../partition.ts';
import { CorruptionError } from './corruption.ts';
import { openFiles, readMeta } from './files.ts';
import { CheckpointState, LayeredView, makeSnapshot } from './reads.ts';
import { latestInstant, loadGeneration, readSegmentsAfter } from './segments.ts';
import { SLOTS, segmentFile } from './wal.ts';

/** A record that is just being written may look damaged; so often it does not. */
const READS_MAX = 5;
const QUIET_MILLISECONDS = 1_000;

type LoadedSegment = ReturnType<typeof loadGeneration>;

export function openLmdbReadOnly(location: string): Engine {
  const { environment, rows, meta } = openFiles(location, { readOnly: true });

  let cached: { readonly applied: number; readonly log: string; readonly loaded: LoadedSegment[] } | undefined;

  /** Once it rests, the log is read only once: a look at all rows takes many snapshots. */
  function load(applied: number): LoadedSegment[] | CorruptionError {
    const log = walFingerprint(location);
    if (cached?.applied === applied && cached.log === log) return cached.loaded;
    try {
      const loaded = readSegmentsAfter(applied, location).map(loadGeneration);
      cached = log === undefined ? undefined : { applied, log, loaded };
      return loaded;
    } catch (error) {
      if (error instanceof CorruptionError) return error;
      throw error;
    }
  }

  /** All that was acknowledged before this call, and nothing of what is later than the last record. */
  function openView() {
    for (let damaged = 0; ; ) {
      const base = new CheckpointState(rows);
      const applied = Number(readMeta(meta, 'applied', base.transaction));
      const loaded = load(applied);
      // A file of the log that was applied meanwhile may have been written over while it was read.
      rows.resetReadTxn();
      const isCurrent = readMeta(meta, 'applied') === BigInt(applied);
      if (isCurrent && !(loaded instanceof CorruptionError)) {
        const generations = loaded.map(({ generation }) => generation).reverse();
        const until = latestInstant([readMeta(meta, 'high-water'), ...loaded.map((each) => each.until)]);
        return { base, view: new LayeredView(generations, base, 0), until };
      }
      base.release();
      if (isCurrent && ++damaged >= READS_MAX) throw loaded;
    }
  }

  const { base, until } = openView();
  base.release();
  const clock = startClock({ atLeast: until });
  return {
    clock,
    snapshot() {
      const { base, view } = openView();
      return makeSnapshot(view, clock.now(), () => base.release());
    },
    commit: async () => {
      throw new Unavailable('These rows were opened to be read only.');
    },
    close: () => environment.close(),
  };
}

/** undefined: it was written so lately that the times of its files would not tell if it is written again. */
function walFingerprint(location: string): string | undefined {
  const times = SLOTS.map((slot) => statSync(segmentFile(location, slot), { throwIfNoEntry: false })?.mtimeMs ?? 0);
  return times.every((time) => Math.abs(Date.now() - time) > QUIET_MILLISECONDS) ? times.join() : undefined;
}
