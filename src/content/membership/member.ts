/**
 * Membership of a process that shares a store: sends heartbeats every two seconds, evicts silent members, and learns of its own eviction.
 * Its epoch is the fencing token of its commits; the member with the lowest epoch is the leader. A heartbeat also tells how far back the
 * reads of its process reach, which gives the low watermark of the reads of all members.
 * docs/adr/0016-membership-and-fencing.md has the argument.
 */
import { type BackgroundTask, startBackgroundTask } from '../../base/background-task.ts';
import { type Partition, Unavailable } from '../../partition/partition.ts';
import { type ActiveReads, createThresholdWaiters, type LowWatermark } from '../gc/active-reads.ts';
import { epochKey, heartbeatKey } from '../rows.ts';
import { addEpoch, removeEpoch } from './epochs.ts';
import {
  allReadsEnded,
  decodeHeartbeat,
  encodeHeartbeat,
  type MembershipView,
  scanHeartbeats,
} from './heartbeat-rows.ts';

export interface Member {
  readonly epoch: bigint;
  /** Low watermark of the reads of all members: for removing bytes that a read of any process may still need. */
  readonly lowWatermark: LowWatermark;
  /** The reads of this process; its heartbeats tell the other members about them. */
  readonly reads: ActiveReads;
  /** Whether this process looks after what evicted processes left. Two leaders for a while do work twice, and no harm. */
  isLeader(): boolean;
  /** Whether a heartbeat of this process was committed lately. */
  isCurrent(): boolean;
  /** Whether this process knows that it was evicted. */
  isEvicted(): boolean;
  /** Sends one heartbeat and reads those of the others. */
  heartbeat(): Promise<void>;
  /** Sends no more heartbeats. */
  stop(): Promise<void>;
  /** Stops, and removes the epoch instead of leaving the eviction to the others. */
  leave(): Promise<void>;
}

export interface MemberOptions {
  readonly partition: Partition;
  readonly reads: ActiveReads;
  /** Called after each heartbeat and view that succeeded. */
  readonly onHeartbeat?: () => void;
  /** This process was evicted: it cannot commit new bytes, and its reads may find their bytes removed. */
  readonly onEvicted: () => void;
  readonly onFailure?: (error: unknown) => void;
  readonly everyMilliseconds?: number;
}

const EVERY_MILLISECONDS = 2_000;
const EVICT_AFTER_TICKS = 150_000_000n;
/** Time alone does not tell a dead process from a store that gave no answers for a while, or whose clock was moved: own heartbeats do. */
const EVICT_AFTER_HEARTBEATS = 8;
/** Shorter than the time after which others evict a process. */
const CURRENT_MILLISECONDS = 10_000;

export async function joinMembership(options: MemberOptions): Promise<Member> {
  const started = performance.now();
  const epoch = await addEpoch(options.partition, (tx) => encodeHeartbeat({ number: 0, oldestRead: -1, at: tx.now }));
  const member = new HeartbeatMember(epoch, options, started);
  await member.heartbeat();
  return member;
}

class HeartbeatMember implements Member {
  readonly epoch: bigint;
  readonly lowWatermark: LowWatermark;
  readonly reads: ActiveReads;
  readonly #options: MemberOptions;
  readonly #background: BackgroundTask;
  #lastNumber = 0;
  /** When the last heartbeat that was acknowledged was sent. */
  #lastHeartbeatAt: number;
  /**
   * Heartbeats that were acknowledged, ascending, each with the number of the first read that can have begun after it. The first
   * entry is the last heartbeat that was acknowledged before the oldest running read began.
   */
  #acknowledged: { readonly number: number; readonly read: number }[];
  #viewsBegun = 0;
  /** Views in order. A read that began before one of these may still be running. */
  readonly #pendingViews: { readonly number: number; readonly view: MembershipView }[] = [];
  /** All reads that began before the view of this number have ended. It only rises. */
  #watermark = 0;
  readonly #waiters = createThresholdWaiters();
  /** Per member: the number of its last heartbeat, and in how many views since then it was the same. */
  readonly #unchangedViews = new Map<bigint, { readonly number: number; views: number }>();
  #leading = false;
  #evicted = false;

  constructor(epoch: bigint, options: MemberOptions, started: number) {
    const { reads } = options;
    this.epoch = epoch;
    this.#options = options;
    this.#lastHeartbeatAt = started;
    this.#acknowledged = [{ number: 0, read: reads.next() }];
    this.lowWatermark = {
      next: () => this.#viewsBegun + 1,
      oldest: () => this.#watermark,
      whenReached: (before) => this.#waiters.until(before, this.#watermark),
    };
    this.reads = {
      ...reads,
      begin: () => {
        // After a long suspension the process does not know yet whether the others still wait for its reads.
        if (!this.isCurrent()) throw new Unavailable('This process has lost touch with the store.');
        return reads.begin();
      },
    };
    this.#background = startBackgroundTask(() => this.#run(), options.everyMilliseconds ?? EVERY_MILLISECONDS);
  }

  // Functions of their own: they are handed on without the member.
  readonly isLeader = (): boolean => this.#leading;
  readonly isCurrent = (): boolean =>
    !this.#evicted && performance.now() - this.#lastHeartbeatAt < CURRENT_MILLISECONDS;
  readonly isEvicted = (): boolean => this.#evicted;

  readonly heartbeat = async (): Promise<void> => {
    this.#background.wake();
    await this.#background.idle();
  };

  readonly stop = (): Promise<void> => this.#background.stop();

  readonly leave = async (): Promise<void> => {
    await this.stop();
    const { epoch } = this;
    if (!this.#evicted) await this.#options.partition.transact(epochKey(epoch), async (tx) => removeEpoch(tx, epoch));
  };

  async #run(): Promise<void> {
    if (this.#evicted) return;
    try {
      await this.#sendHeartbeat();
      const view = await this.#readView();
      this.#applyView(view);
      await this.#evictSilent(view);
    } catch (error) {
      if (!this.#background.isStopping) this.#options.onFailure?.(error);
      return;
    }
    if (!this.#evicted) this.#options.onHeartbeat?.();
  }

  async #sendHeartbeat(): Promise<void> {
    const { epoch } = this;
    const { partition, reads } = this.#options;
    const started = performance.now();
    const number = ++this.#lastNumber;
    const oldestRead = this.#oldestReadHeartbeat();
    const { value: isMember } = await partition.transact(epochKey(epoch), async (tx) => {
      if (!(await tx.get(epochKey(epoch)))) return false;
      tx.put(heartbeatKey(epoch), encodeHeartbeat({ number, oldestRead, at: tx.now }));
      return true;
    });
    if (!isMember) return this.#onOwnEviction();
    this.#lastHeartbeatAt = started;
    this.#acknowledged.push({ number, read: reads.next() });
  }

  /** A read that begins later does not reach further back. */
  #oldestReadHeartbeat(): number {
    const oldest = this.#options.reads.oldest();
    const last = this.#acknowledged.findLastIndex(({ read }) => read <= oldest);
    this.#acknowledged = this.#acknowledged.slice(last);
    return this.#acknowledged[0]!.number;
  }

  async #readView(): Promise<MembershipView> {
    const number = ++this.#viewsBegun;
    const view = await this.#options.partition.read(scanHeartbeats);
    this.#pendingViews.push({ number, view });
    return view;
  }

  #applyView(view: MembershipView): void {
    const pending = this.#pendingViews;
    this.#leading = view.has(this.epoch) && [...view.keys()].every((other) => other >= this.epoch);
    while (pending.length > 0 && allReadsEnded(pending[0]!.view, view)) this.#watermark = pending.shift()!.number;
    this.#waiters.wake(this.#watermark);
    const unchanged = this.#unchangedViews;
    for (const other of unchanged.keys()) if (!view.has(other)) unchanged.delete(other);
    for (const [other, { number }] of view) {
      const known = unchanged.get(other);
      if (known?.number === number) known.views++;
      else unchanged.set(other, { number, views: 0 });
    }
  }

  /** The epoch of a silent member is removed before its bytes may be: the process might only be slow. */
  async #evictSilent(view: MembershipView): Promise<void> {
    for (const [other, { number, at }] of view) {
      if (other === this.epoch || this.#unchangedViews.get(other)!.views < EVICT_AFTER_HEARTBEATS) continue;
      await this.#options.partition.transact(epochKey(other), async (tx) => {
        const row = await tx.get(heartbeatKey(other));
        if ((row && decodeHeartbeat(row).number !== number) || tx.now - at < EVICT_AFTER_TICKS) return;
        removeEpoch(tx, other);
      });
    }
  }

  #onOwnEviction(): void {
    this.#evicted = true;
    this.#leading = false;
    this.#options.reads.cancelAll();
    this.#options.onEvicted();
  }
}
