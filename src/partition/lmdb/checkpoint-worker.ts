/** The checkpoint thread: applies segments of the log to LMDB's file, one at a time. */
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { applySegment, type CheckpointerData, WorkerState } from './checkpoint.ts';
import { openFiles } from './files.ts';
import type { SegmentEnd } from './wal-record.ts';

const { location, stateBuffer, delayMilliseconds, rowsPerTransaction } = workerData as CheckpointerData;
const state = new Int32Array(stateBuffer);
const files = openFiles(location);
// Linux alone has a priority per thread: requests go before checkpoints.
if (process.platform === 'linux') setPriority(0, 10);

parentPort!.on('message', (end: SegmentEnd | undefined) => {
  if (!end) {
    void files.environment.close().then(() => process.exit());
    return;
  }
  if (delayMilliseconds > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, delayMilliseconds);
  if (Atomics.compareExchange(state, 0, WorkerState.idle, WorkerState.applying) !== WorkerState.idle) return;
  let failure: string | undefined;
  try {
    applySegment(files, location, end, rowsPerTransaction);
  } catch (error) {
    failure = (error as Error).message;
  }
  Atomics.store(state, 0, WorkerState.idle);
  Atomics.notify(state, 0);
  parentPort!.postMessage(failure);
});
