/**
 * Optimistic concurrency control with group commit. Transactions of one queue key run one after another over one snapshot plus
 * the writes of those before, and share a commit. The queues only save conflicts: the engine's validation decides.
 */
import type { Engine, Partition } from './partition.ts';
import { Scheduler, type SchedulerOptions } from './scheduler.ts';

const DEFAULTS: SchedulerOptions = {
  attemptsMax: 100,
  attemptsShared: 2,
  attemptsBeside: 5,
  batchMax: 128,
  writesMax: 1_000,
  bytesMax: 8 << 20,
};

export function openPartition(engine: Engine, options: Partial<SchedulerOptions> = {}): Partition {
  const scheduler = new Scheduler(engine, { ...DEFAULTS, ...options });
  return {
    read: (fn) => scheduler.read(fn),
    transact: (queueKey, fn) => scheduler.transact(queueKey, fn),
    transactCombined: (queueKey, input, combined) => scheduler.transactCombined(queueKey, input, combined),
    clock: engine.clock,
    settledCommits: () => scheduler.settledCommits,
    isBroken: () => engine.isBroken?.() ?? false,
    close: () => scheduler.close(),
  };
}
