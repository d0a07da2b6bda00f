/** The rows to look at, while another process may write them: its last checkpoint, and above it what its log holds. */
import { startClock } from '../clock.ts';
import { type Engine, Unavailable } from '../partition.ts';
import { CorruptionError } from './corruption.ts';
import { appliedIn, highWaterIn, openFiles } from './files.ts';
import { Base, snapshotOf, View } from './reads.ts';
import { latestOf, loadGeneration, type Segment, segmentsAfter } from './segments.ts';

/** A record that is just being written may look damaged; so often in a row it does not. */
const READS_MAX = 5;

export function readLmdb(location: string): Engine {
  const { environment, rows, own } = openFiles(location, { readOnly: true });

  /** All that was acknowledged before this call, and nothing of what is later than the last record. */
  function look() {
    for (;;) {
      const base = new Base(rows);
      const applied = appliedIn(own, base.transaction);
      const loaded = readLog(applied, location).map(loadGeneration);
      // A file of the log that was applied meanwhile may have been written over while it was read.
      rows.resetReadTxn();
      if (appliedIn(own) === applied) {
        const generations = loaded.map(({ generation }) => generation).reverse();
        const until = latestOf([highWaterIn(own), ...loaded.map((each) => each.until)]);
        return { base, view: new View(generations, base, 0), until };
      }
      base.release();
    }
  }

  const { base, until } = look();
  base.release();
  const clock = startClock({ atLeast: until });
  return {
    clock,
    snapshot() {
      const { base, view } = look();
      return snapshotOf(view, clock.now(), () => base.release());
    },
    commit: async () => {
      throw new Unavailable('These rows were opened to be read only.');
    },
    close: () => environment.close(),
  };
}

function readLog(applied: number, location: string): Segment[] {
  for (let reads = 1; ; reads++) {
    try {
      return segmentsAfter(applied, location);
    } catch (error) {
      if (!(error instanceof CorruptionError) || reads === READS_MAX) throw error;
    }
  }
}
