/**
 * What a process is between two deaths. Who shares a store with others may be declared dead, because it was stopped for a while
 * or cut off: then it begins again, under another epoch and with new extents, and what was on its way fails.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createOutage, type Outage } from '../base/failure-log.ts';
import type { Log } from '../base/log.ts';
import type { ContentStore } from '../content/content.ts';
import { createContentStore } from '../content/content-store.ts';
import { createReads } from '../content/gc/active-reads.ts';
import { startCollector } from '../content/gc/collector.ts';
import { openEpoch } from '../content/membership/epochs.ts';
import { join } from '../content/membership/members.ts';
import type { Extents } from '../extents/extents.ts';
import type { Hashers } from '../hashing/hash-pool.ts';
import type { Partition } from '../partition/partition.ts';
import type { AccountDirectory } from '../services/accounts/accounts.ts';
import { type Sweeper, startSweeper } from '../services/maintenance/sweeper.ts';

export interface LivesOptions {
  readonly partition: Partition;
  readonly openExtents: (epoch: bigint, onDamage: (error: Error) => void) => Extents | Promise<Extents>;
  readonly hashers: Hashers;
  readonly accounts: AccountDirectory;
  /** Otherwise this process owns the store. */
  readonly isShared: boolean;
  readonly log: Log;
  readonly beatMilliseconds?: number;
}

export interface Life {
  readonly content: ContentStore;
  readonly sweeper: Pick<Sweeper, 'wake'>;
  /** Whether the others know that it lives. */
  isCurrent(): boolean;
  close(): Promise<void>;
}

export interface Lives {
  /** The present one; it may be another at any time. */
  current(): Life;
  close(): Promise<void>;
}

const RETRY_MILLISECONDS = 1_000;

export async function openLives(options: LivesOptions): Promise<Lives> {
  const { log } = options;
  // Beats and beginnings are tried again every other second, for as long as a database may be away.
  const beats = createOutage(log, { begins: 'a beat failed', isOver: 'beats come through again' });
  const beginnings = createOutage(log, { begins: 'cannot begin anew', isOver: 'has begun anew' });
  const closings = new Set<Promise<void>>();
  let isClosing = false;
  const first = openLife(options, beats, onDeath);
  let renewed: Promise<unknown> = first;
  let life = await first;

  function onDeath(): void {
    log.warn('the others have declared this process dead: uploads and downloads that were under way fail');
    renewed = renewed.then(renew);
  }

  async function renew(): Promise<void> {
    const closing = life.close().catch((error: unknown) => log.warn({ err: error }, 'closing failed'));
    closings.add(closing);
    void closing.then(() => closings.delete(closing));
    while (!isClosing) {
      try {
        life = await openLife(options, beats, onDeath);
        beginnings.worked();
        return;
      } catch (error) {
        beginnings.failed(error);
        await sleep(RETRY_MILLISECONDS);
      }
    }
  }

  return {
    current: () => life,
    async close() {
      isClosing = true;
      await renewed;
      await Promise.all([...closings, life.close()]);
    },
  };
}

async function openLife(options: LivesOptions, beats: Outage, onDeath: () => void): Promise<Life> {
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
    let onBeat = () => {};
    const { epoch, horizon, reads, isElected, isCurrent, leave } = await enter(options, beats, onDeath, () => onBeat());
    // While beats fail, this does for the same reason.
    const failed = (text: string) => (error: unknown) => log[beats.isOn ? 'debug' : 'warn']({ err: error }, text);
    // If the store gives no answer, the others find out by themselves.
    closing.push(() => leave().catch((error: unknown) => log.warn({ err: error }, 'leaving failed')));
    const onDamage = (error: Error) => {
      // Of one that the others count among the dead, they do not wait for the reads.
      if (isCurrent()) log.error({ err: error }, 'damaged');
      else log.warn({ err: error }, 'this process has lost touch with the store');
    };
    const extents = await options.openExtents(epoch, onDamage);
    closing.push(() => extents.close());
    const content = createContentStore({ partition, extents, epoch, reads, hashers });
    const sweeper = startSweeper({
      ...{ partition, content, horizon, isElected, removed: accounts.removed },
      accounts: () => [...accounts.stored().map(({ id }) => id), ...accounts.removed()],
      onFailure: failed('sweeping failed'),
    });
    closing.push(() => sweeper.stop());
    const collector = startCollector({
      ...{
        partition,
        extents,
        epoch,
        horizon,
        isElected,
        heldExtents: content.heldExtents,
        isOwner: !options.isShared,
      },
      onFailure: failed('collecting failed'),
      onDamage,
    });
    closing.push(() => collector.stop());
    onBeat = () => {
      accounts.refresh().then(sweeper.wake, failed('reading the accounts failed'));
    };
    sweeper.wake();
    return { content, sweeper, isCurrent, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** As the owner of the store, or as one of several. */
async function enter(
  { partition, isShared, beatMilliseconds }: LivesOptions,
  beats: Outage,
  onDeath: () => void,
  onBeat: () => void,
) {
  const reads = createReads();
  if (!isShared) {
    const epoch = await openEpoch(partition);
    const always = () => true;
    const leave = async () => {};
    return { epoch, reads, horizon: reads, isElected: always, isCurrent: always, leave };
  }
  return join({
    ...{ partition, reads, onDeath, onFailure: beats.failed },
    onBeat() {
      beats.worked();
      onBeat();
    },
    ...(beatMilliseconds !== undefined && { everyMilliseconds: beatMilliseconds }),
  });
}
