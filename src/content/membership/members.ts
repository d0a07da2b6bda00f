/**
 * The processes that share a store. Each has an epoch, which fences its commits, and gives a life sign every two seconds: a
 * beat. Whose beats stop is declared dead; whose epoch is the lowest looks after what belongs to nobody. A beat also says
 * how far back the reads of its process reach: docs/adr/0016-membership-and-fencing.md has the argument.
 */
import { startBackgroundTask } from '../../base/background-task.ts';
import { type Instant, type Partition, type Row, type Snapshot, Unavailable } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import { type ActiveReads, createThresholdWaiters, type LowWatermark } from '../gc/active-reads.ts';
import { epochFromKey, epochKey, heartbeatKey, heartbeatsIn } from '../rows.ts';
import { activeEpochs, addEpoch, removeEpoch } from './epochs.ts';

export interface Member {
  readonly epoch: bigint;
  /** For whoever takes away what reads of any process may still need. */
  readonly lowWatermark: LowWatermark;
  /** The reads of this process, of which the others know. */
  readonly reads: ActiveReads;
  /** Whether it looks after what belongs to nobody. To be wrong for a while costs work done twice, nothing else. */
  isLeader(): boolean;
  /** Whether the others have heard of it lately. */
  isCurrent(): boolean;
  /** Whether it knows that it was declared dead. */
  isEvicted(): boolean;
  /** One beat, and a look at the others. */
  heartbeat(): Promise<void>;
  /** No more beats. */
  stop(): Promise<void>;
  /** Stops, and does not leave it to the others to find out. */
  leave(): Promise<void>;
}

export interface MemberOptions {
  readonly partition: Partition;
  readonly reads: ActiveReads;
  /** It has just looked at the store. */
  readonly onHeartbeat?: () => void;
  /** It was declared dead: its new bytes will not be named, and its reads may find nothing. */
  readonly onEvicted: () => void;
  readonly onFailure?: (error: unknown) => void;
  readonly everyMilliseconds?: number;
}

interface Heartbeat {
  /** Of this process; it rises. */
  readonly number: number;
  /** The last one that was acknowledged before the oldest running read began. */
  readonly oldestRead: number;
  readonly at: Instant;
}

/** What all said at one moment, by epoch. */
type MembershipView = ReadonlyMap<bigint, Heartbeat>;

const EVERY_MILLISECONDS = 2_000;
const EVICT_AFTER_TICKS = 150_000_000n;
/** The clock does not tell a dead process from a store that gave no answers for a while, or whose time was moved: own beats do. */
const EVICT_AFTER_HEARTBEATS = 8;
/** Others do not declare it dead before. */
const CURRENT_MILLISECONDS = 10_000;
const MEMBERS_MAX = 1_000;

export async function joinMembership(options: MemberOptions): Promise<Member> {
  const { partition, reads, onHeartbeat = () => {}, onEvicted, onFailure = () => {} } = options;
  let lastHeartbeatAt = performance.now();
  const epoch = await addEpoch(partition, (tx) => encodeHeartbeat({ number: 0, oldestRead: -1, at: tx.now }));
  let number = 0;
  /** Beats that were acknowledged, and the first read that can have begun after each. */
  let acknowledged = [{ number: 0, read: reads.next() }];
  /** How many views were begun; those that some read may still reach behind; up to which none does. */
  let viewsBegun = 0;
  const pendingViews: { readonly number: number; readonly view: MembershipView }[] = [];
  let watermark = 0;
  const waiters = createThresholdWaiters();
  /** The last number of each of the others, and in how many views it stood still. */
  const unchangedViews = new Map<bigint, { number: number; views: number }>();
  let leading = false;
  let evicted = false;
  const background = startBackgroundTask(run, options.everyMilliseconds ?? EVERY_MILLISECONDS);

  async function run(): Promise<void> {
    if (evicted) return;
    try {
      await sendHeartbeat();
      const view = await readView();
      applyView(view);
      await evictSilent(view);
    } catch (error) {
      if (!background.isStopping) onFailure(error);
      return;
    }
    if (!evicted) onHeartbeat();
  }

  async function sendHeartbeat(): Promise<void> {
    const started = performance.now();
    const next = ++number;
    const oldestRead = oldestReadHeartbeat();
    const { value: isMember } = await partition.transact(epochKey(epoch), async (tx) => {
      if (!(await tx.get(epochKey(epoch)))) return false;
      tx.put(heartbeatKey(epoch), encodeHeartbeat({ number: next, oldestRead, at: tx.now }));
      return true;
    });
    if (!isMember) return onOwnEviction();
    lastHeartbeatAt = started;
    acknowledged.push({ number: next, read: reads.next() });
  }

  /** A read that begins later reaches no further back. */
  function oldestReadHeartbeat(): number {
    const oldest = reads.oldest();
    const last = acknowledged.findLastIndex(({ read }) => read <= oldest);
    acknowledged = acknowledged.slice(last);
    return acknowledged[0]!.number;
  }

  async function readView(): Promise<MembershipView> {
    const view = ++viewsBegun;
    const beats = await partition.read(scanHeartbeats);
    pendingViews.push({ number: view, view: beats });
    return beats;
  }

  function applyView(view: MembershipView): void {
    leading = view.has(epoch) && [...view.keys()].every((other) => other >= epoch);
    while (pendingViews.length > 0 && allReadsEnded(pendingViews[0]!.view, view))
      watermark = pendingViews.shift()!.number;
    waiters.wake(watermark);
    for (const other of unchangedViews.keys()) if (!view.has(other)) unchangedViews.delete(other);
    for (const [other, { number: lastNumber }] of view) {
      const known = unchangedViews.get(other);
      if (known?.number === lastNumber) known.views++;
      else unchangedViews.set(other, { number: lastNumber, views: 0 });
    }
  }

  /** Its epoch goes before its bytes may: it might only have been slow. */
  async function evictSilent(view: MembershipView): Promise<void> {
    for (const [other, { number: lastNumber, at }] of view) {
      if (other === epoch || unchangedViews.get(other)!.views < EVICT_AFTER_HEARTBEATS) continue;
      await partition.transact(epochKey(other), async (tx) => {
        const row = await tx.get(heartbeatKey(other));
        if ((row && decodeHeartbeat(row).number !== lastNumber) || tx.now - at < EVICT_AFTER_TICKS) return;
        removeEpoch(tx, other);
      });
    }
  }

  function onOwnEviction(): void {
    evicted = true;
    leading = false;
    reads.cancelAll();
    onEvicted();
  }

  const isCurrent = (): boolean => !evicted && performance.now() - lastHeartbeatAt < CURRENT_MILLISECONDS;
  const member: Member = {
    epoch,
    lowWatermark: {
      next: () => viewsBegun + 1,
      oldest: () => watermark,
      whenReached: (before) => waiters.until(before, watermark),
    },
    reads: {
      ...reads,
      begin() {
        // Woken after a long sleep, it does not know yet whether the others still wait for its reads.
        if (!isCurrent()) throw new Unavailable('This process has lost touch with the store.');
        return reads.begin();
      },
    },
    isLeader: () => leading,
    isCurrent,
    isEvicted: () => evicted,
    async heartbeat() {
      background.wake();
      await background.idle();
    },
    stop: background.stop,
    async leave() {
      await background.stop();
      if (!evicted) await partition.transact(epochKey(epoch), async (tx) => removeEpoch(tx, epoch));
    },
  };
  await member.heartbeat();
  return member;
}

/** Whether no read that began before the first view can be running at the second. */
function allReadsEnded(first: MembershipView, second: MembershipView): boolean {
  for (const [epoch, { oldestRead }] of second) {
    const then = first.get(epoch);
    if (then && oldestRead <= then.number) return false;
  }
  return true;
}

/** Of all that live, whether they have a beat or not. */
async function scanHeartbeats(at: Snapshot): Promise<MembershipView> {
  const [living, beats] = await Promise.all([activeEpochs(at), at.scan(heartbeatsIn(), { limit: MEMBERS_MAX })]);
  const known = new Map(beats.map((row) => [epochFromKey(row.key), decodeHeartbeat(row)]));
  return new Map([...living].map((epoch) => [epoch, known.get(epoch) ?? { number: -1, oldestRead: -2, at: 0n }]));
}

function encodeHeartbeat({ number, oldestRead, at }: Heartbeat): Buffer {
  return encodeValue({ number, oldestRead, at: at.toString() });
}

function decodeHeartbeat(row: Row): Heartbeat {
  const { number, oldestRead, at } = decodeValue<{ number: number; oldestRead: number; at: string }>(row);
  return { number, oldestRead, at: BigInt(at) };
}
