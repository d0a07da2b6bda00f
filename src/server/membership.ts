/**
 * What a process is between two deaths. Who shares a store with others may be declared dead, because it was stopped for a while
 * or cut off: then it begins again, under another epoch and with new extents, and what was on its way fails.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createFailureLog, type FailureLog } from '../base/failure-log.ts';
import type { Log } from '../base/log.ts';
import type { ContentStore } from '../content/content.ts';
import { createContentStore } from '../content/content-store.ts';
import { createActiveReads } from '../content/gc/active-reads.ts';
import { startCollector } from '../content/gc/collector.ts';
import { takeOverEpoch } from '../content/membership/epochs.ts';
import { joinMembership } from '../content/membership/members.ts';
import type { Extents } from '../extents/extents.ts';
import type { HashPool } from '../hashing/hash-pool.ts';
import type { Partition } from '../partition/partition.ts';
import type { AccountDirectory } from '../services/accounts/accounts.ts';
import { type Sweeper, startSweeper } from '../services/maintenance/sweeper.ts';

export interface ServerMembershipOptions {
  readonly partition: Partition;
  readonly openExtents: (epoch: bigint, onDamage: (error: Error) => void) => Extents | Promise<Extents>;
  readonly hashers: HashPool;
  readonly accounts: AccountDirectory;
  /** Otherwise this process owns the store. */
  readonly isShared: boolean;
  readonly log: Log;
  readonly heartbeatMilliseconds?: number;
}

export interface Incarnation {
  readonly content: ContentStore;
  readonly sweeper: Pick<Sweeper, 'wake'>;
  /** Whether the others know that it lives. */
  isCurrent(): boolean;
  close(): Promise<void>;
}

export interface ServerMembership {
  /** The present one; it may be another at any time. */
  current(): Incarnation;
  close(): Promise<void>;
}

const RETRY_MILLISECONDS = 1_000;

export async function openServerMembership(options: ServerMembershipOptions): Promise<ServerMembership> {
  const { log } = options;
  // Beats and beginnings are tried again every other second, for as long as a database may be away.
  const heartbeats = createFailureLog(log, { begins: 'a beat failed', isOver: 'beats come through again' });
  const rejoins = createFailureLog(log, { begins: 'cannot begin anew', isOver: 'has begun anew' });
  const closings = new Set<Promise<void>>();
  let isClosing = false;
  const first = openIncarnation(options, heartbeats, onEvicted);
  let rejoined: Promise<unknown> = first;
  let incarnation = await first;

  function onEvicted(): void {
    log.warn('the others have declared this process dead: uploads and downloads that were under way fail');
    rejoined = rejoined.then(rejoin);
  }

  async function rejoin(): Promise<void> {
    const closing = incarnation.close().catch((error: unknown) => log.warn({ err: error }, 'closing failed'));
    closings.add(closing);
    void closing.then(() => closings.delete(closing));
    while (!isClosing) {
      try {
        incarnation = await openIncarnation(options, heartbeats, onEvicted);
        rejoins.succeeded();
        return;
      } catch (error) {
        rejoins.failed(error);
        await sleep(RETRY_MILLISECONDS);
      }
    }
  }

  return {
    current: () => incarnation,
    async close() {
      isClosing = true;
      await rejoined;
      await Promise.all([...closings, incarnation.close()]);
    },
  };
}

async function openIncarnation(
  options: ServerMembershipOptions,
  heartbeats: FailureLog,
  onEvicted: () => void,
): Promise<Incarnation> {
  const { partition, hashers, accounts, log } = options;
  const closing: (() => Promise<void>)[] = [];
  let closed: Promise<void> | undefined;
  function close(): Promise<void> {
    closed ??= (async () => {
      for (const end of closing.reverse()) await end();
    })();
    return closed;
  }
  try {
    let onHeartbeat = () => {};
    const { epoch, lowWatermark, reads, isLeader, isCurrent, leave } = await acquireEpoch(
      options,
      heartbeats,
      onEvicted,
      () => onHeartbeat(),
    );
    // While beats fail, this does for the same reason.
    const logFailure = (text: string) => (error: unknown) =>
      log[heartbeats.isFailing ? 'debug' : 'warn']({ err: error }, text);
    // If the store gives no answer, the others find out by themselves.
    closing.push(() => leave().catch((error: unknown) => log.warn({ err: error }, 'leaving failed')));
    const onCorruption = (error: Error) => {
      // Of one that the others count among the dead, they do not wait for the reads.
      if (isCurrent()) log.error({ err: error }, 'damaged');
      else log.warn({ err: error }, 'this process has lost touch with the store');
    };
    const extents = await options.openExtents(epoch, onCorruption);
    closing.push(() => extents.close());
    const content = createContentStore({ partition, extents, epoch, reads, hashers });
    const sweeper = startSweeper({
      ...{ partition, content, lowWatermark, isLeader, removed: () => accounts.removed() },
      accounts: () => [...accounts.stored().map(({ id }) => id), ...accounts.removed()],
      onFailure: logFailure('sweeping failed'),
    });
    closing.push(() => sweeper.stop());
    const collector = startCollector({
      ...{
        partition,
        extents,
        epoch,
        lowWatermark,
        isLeader,
        pinnedExtents: content.pinnedExtents,
        isOwner: !options.isShared,
      },
      onFailure: logFailure('collecting failed'),
      onCorruption,
    });
    closing.push(() => collector.stop());
    onHeartbeat = () => {
      accounts.refresh().then(() => sweeper.wake(), logFailure('reading the accounts failed'));
    };
    sweeper.wake();
    return { content, sweeper, isCurrent, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** As the owner of the store, or as one of several. */
async function acquireEpoch(
  { partition, isShared, heartbeatMilliseconds }: ServerMembershipOptions,
  heartbeats: FailureLog,
  onEvicted: () => void,
  onBeat: () => void,
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
      onBeat();
    },
    ...(heartbeatMilliseconds !== undefined && { everyMilliseconds: heartbeatMilliseconds }),
  });
}
