/**
 * Membership of this server: it joins the store with an epoch (the fencing token of its commits), sends heartbeats, and rejoins
 * as a new incarnation after an eviction. A process that shares a store is evicted when it was stopped for a while or cut off;
 * its next incarnation has another epoch and new extents, and uploads and downloads of the evicted one fail.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createFailureLog, type FailureLog } from '../base/failure-log.ts';
import type { Log } from '../base/log.ts';
import type { ContentStore } from '../content/content.ts';
import { createContentStore } from '../content/content-store.ts';
import { createActiveReads } from '../content/gc/active-reads.ts';
import { type Collector, startCollector } from '../content/gc/collector.ts';
import { takeOverEpoch } from '../content/membership/epochs.ts';
import { joinMembership } from '../content/membership/member.ts';
import { Owner } from '../content/membership/owner.ts';
import type { Extents } from '../extents/extents.ts';
import type { HashPool } from '../hashing/hash-pool.ts';
import type { Partition } from '../partition/partition.ts';
import type { AccountDirectory } from '../services/accounts/accounts.ts';
import { blobCopies } from '../services/blob/copy-target.ts';
import { CopyRunner } from '../services/common/copy-runner.ts';
import type { RemoteSources } from '../services/common/remote-sources.ts';
import type { CopyQueue } from '../services/common/storage.ts';
import { fileCopies } from '../services/file/running-copies.ts';
import { type Sweeper, startSweeper } from '../services/maintenance/sweeper.ts';
import { CloseStack } from './close-stack.ts';
import { localSources } from './services.ts';

export interface ServerMembershipOptions {
  readonly partition: Partition;
  readonly openExtents: (epoch: bigint, onCorruption: (error: Error) => void) => Extents | Promise<Extents>;
  readonly hashers: HashPool;
  readonly accounts: AccountDirectory;
  readonly remote?: RemoteSources | undefined;
  /** Otherwise this process owns the store. */
  readonly isShared: boolean;
  readonly log: Log;
  readonly heartbeatMilliseconds?: number;
}

export interface Incarnation {
  readonly content: ContentStore;
  /** Of volatile rows, such as opens of files. */
  readonly owner: Owner;
  readonly sweeper: Pick<Sweeper, 'wake'>;
  readonly copies: CopyQueue;
  /** Whether the other members have seen a recent heartbeat of this one. */
  isCurrent(): boolean;
  /** For monitoring. */
  readonly extentsUsage: Collector['usage'];
  close(): Promise<void>;
}

const RETRY_MILLISECONDS = 1_000;

export async function openServerMembership(options: ServerMembershipOptions): Promise<ServerMembership> {
  const membership = new ServerMembership(options);
  await membership.join();
  return membership;
}

class ServerMembership {
  private readonly options: ServerMembershipOptions;
  private readonly heartbeats: FailureLog;
  private readonly rejoins: FailureLog;
  /** The present incarnation. Written by `join`, then by `rejoin` alone: an eviction replaces it at any time. */
  current!: Incarnation;
  /** The last rejoin: each is chained to the one before, so one runs at a time. */
  private rejoined: Promise<unknown> = Promise.resolve();
  /** Evicted incarnations whose requests have not all ended. */
  private readonly closings = new Set<Promise<void>>();
  private readonly lossListeners = new Set<() => void>();
  private isClosing = false;

  constructor(options: ServerMembershipOptions) {
    this.options = options;
    // Both are retried every other second for as long as the database is away.
    this.heartbeats = createFailureLog(options.log, { begins: 'a beat failed', isOver: 'beats come through again' });
    this.rejoins = createFailureLog(options.log, { begins: 'cannot begin anew', isOver: 'has begun anew' });
  }

  async join(): Promise<void> {
    const first = this.open();
    // An eviction before the first incarnation is open waits for it.
    this.rejoined = first;
    this.current = await first;
  }

  /** @param listener drops what this process holds by volatile rows: the store has lost them, or they count no more after an eviction */
  onOwnerLost(listener: () => void): void {
    this.lossListeners.add(listener);
  }

  async close(): Promise<void> {
    this.isClosing = true;
    await this.rejoined;
    await Promise.all([...this.closings, this.current.close()]);
  }

  private open(): Promise<Incarnation> {
    const onEvicted = () => {
      this.options.log.warn(
        'the others have declared this process dead: uploads and downloads that were under way fail',
      );
      this.rejoined = this.rejoined.then(() => this.rejoin());
    };
    return openIncarnation(this.options, this.heartbeats, onEvicted, () => {
      for (const listener of this.lossListeners) listener();
    });
  }

  private async rejoin(): Promise<void> {
    this.closeInBackground(this.current);
    while (!this.isClosing) {
      try {
        this.current = await this.open();
        this.rejoins.succeeded();
        return;
      } catch (error) {
        this.rejoins.failed(error);
        await sleep(RETRY_MILLISECONDS);
      }
    }
  }

  private closeInBackground(evicted: Incarnation): void {
    const { log } = this.options;
    const closing = evicted.close().catch((error: unknown) => log.warn({ err: error }, 'closing failed'));
    this.closings.add(closing);
    void closing.then(() => this.closings.delete(closing));
  }
}

async function openIncarnation(
  options: ServerMembershipOptions,
  heartbeats: FailureLog,
  onEvicted: () => void,
  onOwnerLost: () => void,
): Promise<Incarnation> {
  const { partition, hashers, accounts, log, isShared, remote } = options;
  const opened = new CloseStack();
  try {
    let onHeartbeat = () => {};
    let dropHeld = () => {};
    const evicted = (): void => {
      dropHeld();
      onEvicted();
    };
    const member = await acquireEpoch(options, heartbeats, evicted, () => onHeartbeat());
    const { epoch, lowWatermark, reads, isLeader, isCurrent, leave } = member;
    // While heartbeats fail, background work fails for the same reason: one warning is enough.
    const logFailure = (text: string) => (error: unknown) =>
      log[heartbeats.isFailing ? 'debug' : 'warn']({ err: error }, text);
    // If the store gives no answer, the other members notice the missing heartbeats.
    opened.push(() => leave().catch((error: unknown) => log.warn({ err: error }, 'leaving failed')));
    const owner = await Owner.claim(partition, epoch);
    owner.onLost(onOwnerLost);
    opened.push(() => owner.end());
    dropHeld = () => owner.end();
    const onCorruption = (error: Error) => {
      // The other members do not wait for the reads of an evicted one, whose chunks may be gone.
      if (isCurrent()) log.error({ err: error }, 'damaged');
      else log.warn({ err: error }, 'this process has lost touch with the store');
    };
    const extents = await options.openExtents(epoch, onCorruption);
    opened.push(() => extents.close());
    const content = createContentStore({ partition, extents, epoch, reads, hashers });
    const sweeper = startSweeper({
      ...{ partition, content, lowWatermark, isLeader, removed: () => accounts.removed() },
      accounts: () => [...accounts.stored().map(({ id }) => id), ...accounts.removed()],
      onFailure: logFailure('sweeping failed'),
    });
    opened.push(() => sweeper.stop());
    const collector = startCollector({
      ...{ partition, extents, epoch, lowWatermark, isLeader, onCorruption },
      pinnedExtents: content.pinnedExtents,
      isOwner: !isShared,
      onFailure: logFailure('collecting failed'),
    });
    opened.push(() => collector.stop());
    const copies = new CopyRunner({
      ...{ partition, content, epoch, sweeper, remote, sources: localSources },
      targets: [blobCopies, fileCopies],
      onFailure: logFailure('copying failed'),
      accounts: () => accounts.stored().map(({ id }) => id),
    });
    opened.push(() => copies.stop());
    onHeartbeat = () => {
      owner.verify().catch(logFailure('claiming volatile rows failed'));
      accounts.refresh().then(() => sweeper.wake(), logFailure('reading the accounts failed'));
    };
    sweeper.wake();
    const extentsUsage = () => collector.usage();
    return { content, owner, sweeper, copies, isCurrent, extentsUsage, close: () => opened.close() };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** As the owner of the store, or as one of several members. */
async function acquireEpoch(
  { partition, isShared, heartbeatMilliseconds }: ServerMembershipOptions,
  heartbeats: FailureLog,
  onEvicted: () => void,
  onHeartbeat: () => void,
) {
  const reads = createActiveReads();
  if (!isShared) {
    const epoch = await takeOverEpoch(partition);
    const always = () => true;
    const leave = async () => {};
    return { epoch, reads, lowWatermark: reads, isLeader: always, isCurrent: always, leave };
  }
  return joinMembership({
    ...{ partition, reads, onEvicted, onFailure: heartbeats.failed },
    onHeartbeat() {
      heartbeats.succeeded();
      onHeartbeat();
    },
    ...(heartbeatMilliseconds !== undefined && { everyMilliseconds: heartbeatMilliseconds }),
  });
}
