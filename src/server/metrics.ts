/** The metrics of a server: what its parts have counted, gathered when a scrape asks. Each part of it is bounded work. */
import { formatMetrics, type MetricFamily } from '../rest/metrics/prometheus-text.ts';
import { RequestMetrics, requestFamilies } from '../rest/metrics/request-metrics.ts';
import type { ServiceName } from '../services/common/names.ts';
import { readQueueDepths } from '../services/queue/queue-depths.ts';
import { CommandMetrics } from '../smb/command-metrics.ts';
import { formatStatus as formatNtStatus } from '../smb/statuses.ts';
import { EventLoopDelay } from './event-loop-delay.ts';
import type { OpenedStorage } from './open-storage.ts';

type Monitored = Pick<OpenedStorage, 'partition' | 'accounts' | 'heldLeases' | 'extentsUsage' | 'storageFor'>;

/** Of all accounts together. */
const QUEUES_MAX = 200;
/** Depths are read at most this often, however many scrapers there are. */
const DEPTHS_VALID_MILLISECONDS = 2_000;

interface AccountQueue {
  readonly account: string;
  readonly queue: string;
  readonly messages: number;
}

export class ServerMetrics {
  readonly requests: Readonly<Record<ServiceName, RequestMetrics>> = {
    blob: new RequestMetrics(),
    queue: new RequestMetrics(),
    table: new RequestMetrics(),
    file: new RequestMetrics(),
  };
  readonly smb = new CommandMetrics();
  readonly #storage: Monitored;
  readonly #eventLoop = new EventLoopDelay();
  #depths: Promise<readonly AccountQueue[]> | undefined;
  #depthsReadAt = 0;

  constructor(storage: Monitored) {
    this.#storage = storage;
  }

  /** In Prometheus' text form. */
  async format(): Promise<string> {
    this.#eventLoop.start();
    return formatMetrics([
      ...requestFamilies(this.requests),
      ...smbFamilies(this.smb),
      ...this.#engineFamilies(),
      ...this.#extentFamilies(),
      ...(await this.#queueFamilies()),
      gauge(
        'holdfast_leases_held',
        'Leases that this process has granted and that have not ended.',
        this.#countLeases(),
      ),
      this.#eventLoopFamily(),
      ...processFamilies(),
    ]);
  }

  stop(): void {
    this.#eventLoop.stop();
  }

  #engineFamilies(): MetricFamily[] {
    const { groupTransactions, flushSeconds, checkpointSeconds, walBytes, dataFileBytes } =
      this.#storage.partition.figures();
    return [
      histogram('holdfast_commit_group_transactions', 'Transactions in each group of commits.', groupTransactions),
      histogram('holdfast_commit_flush_seconds', 'Time until a group of commits was durable.', flushSeconds),
      histogram('holdfast_checkpoint_seconds', 'Duration of checkpoints.', checkpointSeconds),
      gauge('holdfast_wal_bytes', 'Records of the write-ahead log that no checkpoint has applied yet.', walBytes),
      gauge('holdfast_checkpoint_file_bytes', 'Size of the file that checkpoints write.', dataFileBytes),
    ];
  }

  #extentFamilies(): MetricFamily[] {
    const { extents, bytes = 0, liveBytes } = this.#storage.extentsUsage() ?? {};
    const dead = liveBytes === undefined ? undefined : bytes - liveBytes;
    return [
      gauge('holdfast_extents', 'Files of extents.', extents),
      gauge('holdfast_extents_live_bytes', 'Bytes of extents that rows name.', liveBytes),
      gauge(
        'holdfast_extents_dead_bytes',
        'Bytes of extents beside these: dead ones, which the garbage collector reclaims, and checksums.',
        dead,
      ),
    ];
  }

  async #queueFamilies(): Promise<MetricFamily[]> {
    const queues = await this.#readDepths();
    const samples = queues.map(({ account, queue, messages }) => ({ labels: { account, queue }, value: messages }));
    const help = `Messages in a queue, visible or not; of the first ${QUEUES_MAX} queues.`;
    return [{ name: 'holdfast_queue_messages', help, type: 'gauge', samples }];
  }

  #readDepths(): Promise<readonly AccountQueue[]> {
    if (this.#depths && performance.now() - this.#depthsReadAt < DEPTHS_VALID_MILLISECONDS) return this.#depths;
    this.#depthsReadAt = performance.now();
    this.#depths = this.#scanDepths();
    // The next scrape tries again.
    this.#depths.catch(() => {
      this.#depths = undefined;
    });
    return this.#depths;
  }

  async #scanDepths(): Promise<readonly AccountQueue[]> {
    const { accounts, storageFor } = this.#storage;
    const found: AccountQueue[] = [];
    for (const account of accounts.list()) {
      if (found.length >= QUEUES_MAX) break;
      const depths = await readQueueDepths(storageFor(account), QUEUES_MAX - found.length);
      found.push(...depths.map((depth) => ({ account: account.name, ...depth })));
    }
    return found;
  }

  #countLeases(): number {
    const { heldLeases, partition } = this.#storage;
    return heldLeases.count(partition.clock.now());
  }

  #eventLoopFamily(): MetricFamily {
    const help = 'How late timers are, since the first scrape: sampled 20 times a second.';
    return histogram('holdfast_event_loop_delay_seconds', help, this.#eventLoop.seconds);
  }
}

function smbFamilies(metrics: CommandMetrics): MetricFamily[] {
  const commands = metrics.list();
  return [
    {
      name: 'holdfast_smb_commands_total',
      help: 'Commands of SMB by NTSTATUS.',
      type: 'counter',
      samples: commands.flatMap(([command, { byStatus }]) =>
        [...byStatus].map(([status, value]) => ({ labels: { command, status: formatNtStatus(status) }, value })),
      ),
    },
    {
      name: 'holdfast_smb_command_duration_seconds',
      help: 'Time from the arrival of a command of SMB to its answer.',
      type: 'histogram',
      samples: commands.map(([command, { seconds: histogram }]) => ({ labels: { command }, histogram })),
    },
  ];
}

/** The names that Prometheus' own client for Node.js has, so that dashboards of others work. */
function processFamilies(): MetricFamily[] {
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  const seconds = (user + system) / 1e6;
  return [
    { ...gauge('process_cpu_seconds_total', 'CPU time of the process.', seconds), type: 'counter' } as MetricFamily,
    gauge('process_start_time_seconds', 'Start of the process, in Unix time.', performance.timeOrigin / 1_000),
    gauge('process_resident_memory_bytes', 'Resident memory.', rss),
    gauge('nodejs_heap_size_used_bytes', "Used part of V8's heap.", heapUsed),
    gauge('nodejs_heap_size_total_bytes', "V8's heap.", heapTotal),
    gauge('nodejs_external_memory_bytes', 'Memory of buffers, outside of the heap.', external),
  ];
}

/** Without a value the family is left out. */
function gauge(name: string, help: string, value: number | undefined): MetricFamily {
  return { name, help, type: 'gauge', samples: value === undefined ? [] : [{ value }] };
}

function histogram(name: string, help: string, figures: HistogramSource): MetricFamily {
  return { name, help, type: 'histogram', samples: figures ? [{ histogram: figures }] : [] };
}

type HistogramSource = ReturnType<Monitored['partition']['figures']>['flushSeconds'];
