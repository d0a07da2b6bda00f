/** Checkpoints: a segment of the log is applied to LMDB's file in one ordinary durable transaction, by a thread of its own. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { compiledWorkerUrl } from '../../base/worker-url.ts';
import { type LmdbFiles, writeMeta } from './files.ts';
import { readSegment } from './segments.ts';
import { RECORDS_AT, type SegmentEnd } from './wal.ts';
import { replayRecords } from './wal-record.ts';

export interface CheckpointerData {
  readonly location: string;
  /** Four bytes: one of Working. */
  readonly stateBuffer: SharedArrayBuffer;
  readonly delayMilliseconds: number;
}

export interface CheckpointDone {
  error?: string;
}

/** Whether a segment is being applied; never: the process ends. */
export const WorkerState = { idle: 0, applying: 1, stopped: 2 } as const;

/** So little log is applied sooner than a thread begins. */
const INLINE_BYTES_MAX = 256 << 10;
/** Longer than any transaction takes: a thread that has died does not keep the process. */
const WAIT_MILLISECONDS = 30_000;

/** To repeat it changes nothing. Nothing but this writes to LMDB's file. */
export function applySegment({ environment, rows, meta }: LmdbFiles, location: string, end: SegmentEnd): void {
  // A reader of another process that was killed would keep all freed pages for ever.
  (environment as unknown as { readerCheck(): number }).readerCheck();
  const { rows: left, until } = replayRecords(readSegment(location, end).records);
  // LMDB writes neighbours to the same pages.
  const keys = [...left.keys()].sort();
  rows.transactionSync(() => {
    for (const key of keys) {
      const stored = left.get(key);
      if (stored) rows.putSync(key, stored);
      else rows.removeSync(key);
    }
    if (until > 0n) writeMeta(meta, 'high-water', until);
    writeMeta(meta, 'applied', BigInt(end.number));
  });
}

export class Checkpointer {
  private readonly files: LmdbFiles;
  private readonly data: CheckpointerData;
  private readonly state: Int32Array;
  private readonly onDone: (error: Error | undefined) => void;
  private worker: Worker | undefined;

  /** @param onDone of each segment; an error is final */
  constructor(
    location: string,
    files: LmdbFiles,
    delayMilliseconds: number,
    onDone: (error: Error | undefined) => void,
  ) {
    const working = new SharedArrayBuffer(4);
    this.files = files;
    this.data = { location, stateBuffer: working, delayMilliseconds };
    this.state = new Int32Array(working);
    this.onDone = onDone;
  }

  apply(end: SegmentEnd): void {
    this.worker ??= this.start();
    this.worker.postMessage(end);
  }

  /** At the end of the process's work, when nobody waits for the event loop; false: it is too much for that. */
  applyInline(end: SegmentEnd): boolean {
    if (this.worker || end.position - RECORDS_AT > INLINE_BYTES_MAX) return false;
    let fault: Error | undefined;
    try {
      applySegment(this.files, this.data.location, end);
    } catch (error) {
      fault = error as Error;
    }
    this.onDone(fault);
    return true;
  }

  async stop(): Promise<void> {
    const { worker } = this;
    if (!worker) return;
    const gone = once(worker, 'exit');
    worker.postMessage(undefined);
    await gone;
  }

  private start(): Worker {
    const worker = new Worker(compiledWorkerUrl(import.meta.url, './checkpoint-worker.ts'), {
      workerData: this.data,
      // It makes much garbage at once, and nobody waits for it.
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
    });
    worker.on('message', ({ error }: CheckpointDone) =>
      this.onDone(error === undefined ? undefined : new Error(error)),
    );
    worker.on('error', this.onDone);
    // A thread that is ended within a transaction would leave LMDB's lock behind, and the end of the process would wait for it.
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
