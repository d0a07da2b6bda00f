/**
 * Storage Analytics: request logs in $logs, and sums in the metrics tables, for accounts that have switched them on. Both are
 * buffered in memory and written in the background; a process that is killed loses what it has buffered.
 */
import { type BackgroundTask, startBackgroundTask } from '../../base/background-task.ts';
import { type Instant, OutcomeUnknown, type Partition } from '../../partition/partition.ts';
import type { AccessRecord } from '../../rules/analytics/access-record.ts';
import { isLogged } from '../../rules/analytics/outcomes.ts';
import { StorageError } from '../common/errors.ts';
import { type ServiceName, serviceNames } from '../common/names.ts';
import type { Metrics } from '../common/service-properties.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { removeOldLogs, writeLog } from './log-blobs.ts';
import { createLogBuffer, type LogBuffer, type LogBufferLimits, type WriteOutcome } from './log-buffer.ts';
import { createMetricsAggregator, type Granularity, type MetricsAggregator } from './metrics-aggregator.ts';
import { removeOldMetrics, writeMetrics } from './metrics-tables.ts';
import { type AnalysedAccount, type AnalyticsSettings, isOn, readSettings } from './settings.ts';

export interface AnalyticsOptions {
  readonly partition: Partition;
  /** The clock of the access records. */
  readonly date: () => Instant;
  readonly accounts: () => readonly AnalysedAccount[];
  readonly storageOf: (account: { readonly id: AccountId }) => Storage;
  readonly onFailure: (error: unknown) => void;
  readonly onWorked: () => void;
  /** This many did not fit into memory. */
  readonly onDropped: (what: 'log lines' | 'requests of the metrics', count: number) => void;
  readonly limits?: LogBufferLimits & { readonly countersMax?: number };
  readonly everyMilliseconds?: Partial<Intervals>;
}

/** How often each kind of work is done. */
interface Intervals {
  readonly settings: number;
  readonly metrics: number;
  readonly logs: number;
  readonly retention: number;
}

const EVERY_MILLISECONDS: Intervals = { settings: 5_000, metrics: 60_000, logs: 300_000, retention: 3_600_000 };

export async function startAnalytics(options: AnalyticsOptions): Promise<Analytics> {
  const analytics = new Analytics(options);
  await analytics.readSettings();
  return analytics;
}

export class Analytics {
  private readonly options: AnalyticsOptions;
  private readonly every: Intervals;
  private readonly logBuffer: LogBuffer;
  private readonly aggregator: MetricsAggregator;
  private readonly background: BackgroundTask;
  /** When each kind of work was last begun, in milliseconds of the process. */
  private readonly begunAt = {
    metrics: performance.now(),
    logs: performance.now(),
    retention: Number.NEGATIVE_INFINITY,
  };
  /** By account name. */
  private settings: ReadonlyMap<string, AnalyticsSettings> = new Map();
  /** Whether any account has logging or metrics switched on. */
  isOn = false;
  /** Reads of the settings that were begun. */
  private reads = 0;
  /** The read that `settings` are from: an earlier read that ends later is ignored. */
  private latestRead = 0;
  private failures = 0;
  /** The next run does all kinds of work, whether due or not. */
  private isForced = false;
  /** The background task was woken because the log buffer is half full; it is not woken again before the logs were written. */
  private isFlushRequested = false;

  constructor(options: AnalyticsOptions) {
    this.options = options;
    this.every = { ...EVERY_MILLISECONDS, ...options.everyMilliseconds };
    this.logBuffer = createLogBuffer(options.limits);
    this.aggregator = createMetricsAggregator(options.limits);
    this.background = startBackgroundTask(() => this.run(), this.every.settings);
  }

  /** To be called for every answered request while `isOn`. */
  record(request: AccessRecord): void {
    const known = this.settings.get(request.account);
    const properties = known?.services[request.service];
    if (!properties) return;
    const { logging, hourMetrics, minuteMetrics } = properties;
    if (logging?.[request.kind] && isLogged(request)) {
      this.logBuffer.add(known.account.id, request, logging.version);
      if (this.logBuffer.isHalfFull && !this.isFlushRequested) {
        this.isFlushRequested = true;
        this.background.wake();
      }
    }
    this.count(known.account, 'hour', hourMetrics, request);
    this.count(known.account, 'minute', minuteMetrics, request);
  }

  /** Reads the settings again. A failure is only reported, because the timer reads them again soon. */
  async refresh(): Promise<void> {
    await this.readSettings().catch((error) => this.failed(error));
  }

  /** As `refresh`, except that a failure is thrown. */
  async readSettings(): Promise<void> {
    const read = ++this.reads;
    const found = await readSettings(this.options.partition, this.options.accounts());
    if (read < this.latestRead) return;
    this.latestRead = read;
    this.settings = found;
    this.isOn = [...found.values()].some(({ services }) => Object.values(services).some(isOn));
  }

  /** Does all kinds of work at once, whether due or not. */
  async settle(): Promise<void> {
    this.isForced = true;
    this.background.wake();
    await this.background.idle();
  }

  /** Discards the buffered records. */
  async reset(): Promise<void> {
    await this.background.idle();
    this.logBuffer.clear();
    this.aggregator.clear();
    await this.refresh();
  }

  /** Writes the buffered records. */
  async stop(): Promise<void> {
    await this.background.stop();
    try {
      await this.writeAllMetrics();
      await this.writeAllLogs();
    } catch (error) {
      this.failed(error);
    }
  }

  private count({ id }: AnalysedAccount, span: Granularity, metrics: Metrics | undefined, request: AccessRecord): void {
    if (metrics?.enabled) this.aggregator.count(id, span, request, metrics.perApi === true);
  }

  private async run(): Promise<void> {
    const failuresBefore = this.failures;
    try {
      await this.readSettings();
      const isForced = this.isForced;
      this.isForced = false;
      if (isForced || this.isDue('metrics')) await this.writeAllMetrics();
      if (isForced || this.isDue('logs') || this.logBuffer.isHalfFull) await this.writeAllLogs();
      if (isForced || this.isDue('retention')) await this.removeOld();
      if (this.failures === failuresBefore) this.options.onWorked();
    } catch (error) {
      this.failed(error);
    }
  }

  private failed(error: unknown): void {
    this.failures++;
    this.options.onFailure(error);
  }

  private isDue(work: 'metrics' | 'logs' | 'retention'): boolean {
    return performance.now() - this.begunAt[work] >= this.every[work];
  }

  private async writeAllMetrics(): Promise<void> {
    this.begunAt.metrics = performance.now();
    const { storageOf, onDropped } = this.options;
    await this.aggregator.writeAll((batch) => this.writeOutcome(writeMetrics(storageOf({ id: batch.account }), batch)));
    const dropped = this.aggregator.takeDropped();
    if (dropped > 0) onDropped('requests of the metrics', dropped);
  }

  private async writeAllLogs(): Promise<void> {
    this.begunAt.logs = performance.now();
    const { storageOf, onDropped } = this.options;
    await this.logBuffer.writeAll((page) => this.writeOutcome(writeLog(storageOf({ id: page.account }), page)));
    const dropped = this.logBuffer.takeDropped();
    if (dropped > 0) onDropped('log lines', dropped);
    this.isFlushRequested = this.logBuffer.isHalfFull;
  }

  /**
   * A refusal is final, because the account was removed for example. A commit of unknown outcome is not repeated: the requests
   * might be counted twice.
   */
  private async writeOutcome(writing: Promise<void>): Promise<WriteOutcome> {
    try {
      await writing;
      return 'written';
    } catch (error) {
      this.failed(error);
      const isFinal = error instanceof StorageError || error instanceof OutcomeUnknown;
      return isFinal ? 'refused' : 'retry';
    }
  }

  private async removeOld(): Promise<void> {
    this.begunAt.retention = performance.now();
    const now = this.options.date();
    for (const { account, services } of this.settings.values()) {
      const storage = this.options.storageOf(account);
      for (const service of serviceNames) await removeOldFor(storage, service, services, now);
    }
  }
}

async function removeOldFor(
  storage: Storage,
  service: ServiceName,
  services: AnalyticsSettings['services'],
  now: Instant,
): Promise<void> {
  const { logging, hourMetrics, minuteMetrics } = services[service] ?? {};
  if (logging?.days !== undefined) await removeOldLogs(storage, service, logging.days, now);
  if (hourMetrics?.days !== undefined) await removeOldMetrics(storage, service, 'hour', hourMetrics.days, now);
  if (minuteMetrics?.days !== undefined) await removeOldMetrics(storage, service, 'minute', minuteMetrics.days, now);
}
