/**
 * Storage Analytics: who switched it on finds what was asked of his account as lines in $logs and as sums in the metrics tables.
 * Both are gathered in memory, and written beside the requests; what was gathered since then is lost with the process.
 */
import { startBackgroundTask } from '../../base/background-task.ts';
import { type Instant, OutcomeUnknown, type Partition } from '../../partition/partition.ts';
import type { AccessRecord } from '../../rules/analytics/access-record.ts';
import { isLogged } from '../../rules/analytics/outcomes.ts';
import { StorageError } from '../common/errors.ts';
import { type ServiceName, serviceNames } from '../common/names.ts';
import type { Metrics } from '../common/service-properties.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { removeOldLogs, writeLog } from './log-blobs.ts';
import { createLogBuffer, type LogBufferLimits } from './log-buffer.ts';
import { createMetricsAggregator, type Granularity } from './metrics-aggregator.ts';
import { removeOldMetrics, writeMetrics } from './metrics-tables.ts';
import { type AnalysedAccount, type AnalyticsSettings, isOn, readSettings } from './settings.ts';

export interface Analytics {
  /** Whether anybody wants to know. */
  readonly isOn: boolean;
  /** To be told of every request, if so. */
  answered(request: AccessRecord): void;
  /** The settings may have changed. */
  changed(): Promise<void>;
  /** Does at once all that would be done in time. */
  settle(): Promise<void>;
  /** What was gathered is of no more use. */
  reset(): Promise<void>;
  /** Writes what was gathered. */
  stop(): Promise<void>;
}

export interface AnalyticsOptions {
  readonly partition: Partition;
  /** By which requests are told. */
  readonly date: () => Instant;
  readonly accounts: () => readonly AnalysedAccount[];
  readonly storageOf: (account: { readonly id: AccountId }) => Storage;
  readonly onFailure: (error: unknown) => void;
  readonly onWorked: () => void;
  /** So many did not fit into memory. */
  readonly onDropped: (what: 'log lines' | 'requests of the metrics', count: number) => void;
  readonly limits?: LogBufferLimits & { readonly talliesMax?: number };
  readonly everyMilliseconds?: Partial<Intervals>;
}

/** How often each thing is done. */
interface Intervals {
  readonly settings: number;
  readonly metrics: number;
  readonly logs: number;
  readonly retention: number;
}

const EVERY_MILLISECONDS: Intervals = { settings: 5_000, metrics: 60_000, logs: 300_000, retention: 3_600_000 };

export async function startAnalytics(options: AnalyticsOptions): Promise<Analytics> {
  const { partition, storageOf } = options;
  const every: Intervals = { ...EVERY_MILLISECONDS, ...options.everyMilliseconds };
  const logBuffer = createLogBuffer(options.limits);
  const aggregator = createMetricsAggregator(options.limits);
  const doneAt = { metrics: performance.now(), logs: performance.now(), retention: Number.NEGATIVE_INFINITY };
  let settings: ReadonlyMap<string, AnalyticsSettings> = new Map();
  let reads = 0;
  let latest = 0;
  let failures = 0;
  let isForced = false;
  /** Because the book was filling up. If that did not help, time must. */
  let isFlushRequested = false;
  const background = startBackgroundTask(run, every.settings);

  const analytics = { isOn: false, answered, changed, settle, reset, stop };
  await refresh();
  return analytics;

  /** Whatever comes of it, the settings are read again before long. */
  async function changed(): Promise<void> {
    await refresh().catch(failed);
  }

  /** What was read earlier does not come after what was read later. */
  async function refresh(): Promise<void> {
    const read = ++reads;
    const found = await readSettings(partition, options.accounts());
    if (read < latest) return;
    latest = read;
    settings = found;
    analytics.isOn = [...found.values()].some(({ services }) => Object.values(services).some(isOn));
  }

  function answered(request: AccessRecord): void {
    const known = settings.get(request.account);
    const properties = known?.services[request.service];
    if (!properties) return;
    const { logging, hourMetrics, minuteMetrics } = properties;
    if (logging?.[request.kind] && isLogged(request)) {
      logBuffer.add(known.account.id, request, logging.version);
      if (logBuffer.isHalfFull && !isFlushRequested) {
        isFlushRequested = true;
        background.wake();
      }
    }
    count(known.account, 'hour', hourMetrics, request);
    count(known.account, 'minute', minuteMetrics, request);
  }

  function count(
    { id }: AnalysedAccount,
    span: Granularity,
    metrics: Metrics | undefined,
    request: AccessRecord,
  ): void {
    if (metrics?.enabled) aggregator.count(id, span, request, metrics.perApi === true);
  }

  async function run(): Promise<void> {
    const before = failures;
    try {
      await refresh();
      const forced = isForced;
      isForced = false;
      if (forced || isDue('metrics')) await writeAllMetrics();
      if (forced || isDue('logs') || logBuffer.isHalfFull) await writeAllLogs();
      if (forced || isDue('retention')) await removeOld();
      if (failures === before) options.onWorked();
    } catch (error) {
      failed(error);
    }
  }

  function failed(error: unknown): void {
    failures++;
    options.onFailure(error);
  }

  function isDue(what: keyof typeof doneAt): boolean {
    return performance.now() - doneAt[what] >= every[what];
  }

  async function writeAllMetrics(): Promise<void> {
    doneAt.metrics = performance.now();
    await aggregator.writeAll((reading) => writeOutcome(writeMetrics(storageOf({ id: reading.account }), reading)));
    const dropped = aggregator.takeDropped();
    if (dropped > 0) options.onDropped('requests of the metrics', dropped);
  }

  async function writeAllLogs(): Promise<void> {
    doneAt.logs = performance.now();
    await logBuffer.writeAll((page) => writeOutcome(writeLog(storageOf({ id: page.account }), page)));
    const dropped = logBuffer.takeDropped();
    if (dropped > 0) options.onDropped('log lines', dropped);
    isFlushRequested = logBuffer.isHalfFull;
  }

  /** What the account refuses, because it is gone say, it would refuse again. A commit that may have happened is not repeated. */
  async function writeOutcome(writing: Promise<void>): Promise<'written' | 'refused' | 'later'> {
    try {
      await writing;
      return 'written';
    } catch (error) {
      failed(error);
      const isFinal = error instanceof StorageError || error instanceof OutcomeUnknown;
      return isFinal ? 'refused' : 'later';
    }
  }

  async function removeOld(): Promise<void> {
    doneAt.retention = performance.now();
    const now = options.date();
    for (const { account, services } of settings.values()) {
      const storage = storageOf(account);
      for (const service of serviceNames) await removeOldFor(storage, service, services, now);
    }
  }

  async function removeOldFor(
    storage: Storage,
    service: ServiceName,
    services: AnalyticsSettings['services'],
    now: bigint,
  ) {
    const { logging, hourMetrics, minuteMetrics } = services[service] ?? {};
    if (logging?.days !== undefined) await removeOldLogs(storage, service, logging.days, now);
    if (hourMetrics?.days !== undefined) await removeOldMetrics(storage, service, 'hour', hourMetrics.days, now);
    if (minuteMetrics?.days !== undefined) await removeOldMetrics(storage, service, 'minute', minuteMetrics.days, now);
  }

  async function settle(): Promise<void> {
    isForced = true;
    background.wake();
    await background.idle();
  }

  async function reset(): Promise<void> {
    await background.idle();
    logBuffer.clear();
    aggregator.clear();
    await changed();
  }

  async function stop(): Promise<void> {
    await background.stop();
    try {
      await writeAllMetrics();
      await writeAllLogs();
    } catch (error) {
      failed(error);
    }
  }
}
