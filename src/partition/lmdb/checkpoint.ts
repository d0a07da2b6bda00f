/** Checkpoints: a worker thread applies a segment of the log to LMDB's file in ordinary durable transactions. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { compiledWorkerUrl } from '../../base/worker-url.ts';
import { type LmdbFiles, writeMeta } from './files.ts';
import { readSegment } from './segments.ts';
import { RECORDS_AT } from './wal.ts';
import { type LoggedRows, replayRecords, type SegmentEnd } from './wal-record.ts';

export interface CheckpointerData {
  readonly location: string;
  /** Four bytes: a WorkerState. */
  readonly stateBuffer: SharedArrayBuffer;
  readonly delayMilliseconds: number;
  readonly rowsPerTransaction: number;
}

/** Stopped: the process ends, and no further segment may be begun. */
export const WorkerState = { idle: 0, applying: 1, stopped: 2 } as const;

/** A segment up to this length is applied sooner than a thread starts. */
const INLINE_BYTES_MAX = 256 << 10;
/** Longer than any transaction takes, so that a thread that has died does not keep the process alive. */
const WAIT_MILLISECONDS = 30_000;

/** Idempotent. Nothing else writes to LMDB's file, but for preallocated zeros while no checkpoint runs. */
export function applySegment(files: LmdbFiles, location: string, end: SegmentEnd, rowsPerTransaction: number): void {
  const { environment } = files;
  // The reader slot of a process that was killed would pin all freed pages for ever.
  (environment as unknown as { readerCheck(): number }).readerCheck();
  applyRows(files, replayRecords(readSegment(location, end).records), { applied: end.number, rowsPerTransaction });
}

/**
 * Only the last transaction names the segment as applied. Until then every reader has the segment as a generation, which hides the rows
 * that are already in the file.
 * @param applied the segment that the rows are from
 */
export function applyRows(
  { rows, meta }: LmdbFiles,
  logged: LoggedRows,
  { applied = 0, rowsPerTransaction = Infinity } = {},
): void {
  // Sorted, since neighbours share pages.
  const keys = [...logged.rows.keys()].sort();
  for (let from = 0; ; from += rowsPerTransaction) {
    const to = from + rowsPerTransaction;
    rows.transactionSync(() => {
      for (const key of keys.slice(from, to)) {
        const stored = logged.rows.get(key);
        if (stored) rows.putSync(key, stored);
        else rows.removeSync(key);
      }
      if (to < keys.length) return;
      if (logged.until > 0n) writeMeta(meta, 'high-water', logged.until);
      if (applied > 0) writeMeta(meta, 'applied', BigInt(applied));
    });
    if (to >= keys.length) return;
  }
}

export class Checkpointer {
  private readonly files: LmdbFiles;
  private readonly data: CheckpointerData;
  private readonly state: Int32Array;
  private readonly onDone: (error: Error | undefined) => void;
  private worker: Worker | undefined;

  /** @param onDone called once per segment; an error is final */
  constructor(
    location: string,
    files: LmdbFiles,
    options: Pick<CheckpointerData, 'delayMilliseconds' | 'rowsPerTransaction'>,
    onDone: (error: Error | undefined) => void,
  ) {
    const stateBuffer = new SharedArrayBuffer(4);
    this.files = files;
    this.data = { location, stateBuffer, ...options };
    this.state = new Int32Array(stateBuffer);
    this.onDone = onDone;
  }

  apply(end: SegmentEnd): void {
    this.worker ??= this.start();
    this.worker.postMessage(end);
  }

  /** At a close, when nothing else needs the event loop. False: the segment is too long for that. */
  applyInline(end: SegmentEnd): boolean {
    if (this.worker || end.position - RECORDS_AT > INLINE_BYTES_MAX) return false;
    let failure: Error | undefined;
    try {
      applySegment(this.files, this.data.location, end, this.data.rowsPerTransaction);
    } catch (error) {
      failure = error as Error;
    }
    this.onDone(failure);
    return true;
  }

  async stop(): Promise<void> {
    if (!this.worker) return;
    const exited = once(this.worker, 'exit');
    this.worker.postMessage(undefined);
    await exited;
  }

  private start(): Worker {
    const worker = new Worker(compiledWorkerUrl(import.meta.url, './checkpoint-worker.ts'), {
      workerData: this.data,
      // A segment leaves much garbage at once, and its collection delays no request.
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
    });
    worker.on('message', (error: string | undefined) => this.onDone(error === undefined ? error : new Error(error)));
    worker.on('error', this.onDone);
    // A thread terminated within a transaction would leave LMDB's lock taken, and the exit of the process would wait for the lock.
    const wait = (): void => {
      if (Atomics.compareExchange(this.state, 0, WorkerState.idle, WorkerState.stopped) === WorkerState.applying) {
        Atomics.wait(this.state, 0, WorkerState.applying, WAIT_MILLISECONDS);
      }
    };
    process.on('exit', wait);
    worker.on('exit', () => process.off('exit', wait));
    return worker;
  }
}
