/**
 * The processes that share a store. Each has an epoch, which fences its commits, and gives a life sign every two seconds: a
 * beat. Whose beats stop is declared dead; whose epoch is the lowest looks after what belongs to nobody. A beat also says
 * how far back the reads of its process reach: docs/adr/0016-several-processes.md has the argument.
 */
import { startBackground } from '../../base/background-task.ts';
import { type Instant, type Partition, type Row, type Snapshot, Unavailable } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import { createWaiting, type Horizon, type Reads } from '../gc/active-reads.ts';
import { beatKey, beatsIn, epochIn, epochKey } from '../rows.ts';
import { addEpoch, livingEpochs, removeEpoch } from './epochs.ts';

export interface Member {
  readonly epoch: bigint;
  /** For whoever takes away what reads of any process may still need. */
  readonly horizon: Horizon;
  /** The reads of this process, of which the others know. */
  readonly reads: Reads;
  /** Whether it looks after what belongs to nobody. To be wrong for a while costs work done twice, nothing else. */
  isElected(): boolean;
  /** Whether the others have heard of it lately. */
  isCurrent(): boolean;
  /** Whether it knows that it was declared dead. */
  isDead(): boolean;
  /** One beat, and a look at the others. */
  beat(): Promise<void>;
  /** No more beats. */
  stop(): Promise<void>;
  /** Stops, and does not leave it to the others to find out. */
  leave(): Promise<void>;
}

export interface MemberOptions {
  readonly partition: Partition;
  readonly reads: Reads;
  /** It has just looked at the store. */
  readonly onBeat?: () => void;
  /** It was declared dead: its new bytes will not be named, and its reads may find nothing. */
  readonly onDeath: () => void;
  readonly onFailure?: (error: unknown) => void;
  readonly everyMilliseconds?: number;
}

interface Beat {
  /** Of this process; it rises. */
  readonly number: number;
  /** The last one that was acknowledged before the oldest running read began. */
  readonly oldestRead: number;
  readonly at: Instant;
}

/** What all said at one moment, by epoch. */
type View = ReadonlyMap<bigint, Beat>;

const EVERY_MILLISECONDS = 2_000;
const SILENT_TICKS = 150_000_000n;
/** The clock does not tell a dead process from a store that gave no answers for a while, or whose time was moved: own beats do. */
const SILENT_BEATS = 8;
/** Others do not declare it dead before. */
const CURRENT_MILLISECONDS = 10_000;
const MEMBERS_MAX = 1_000;

export async function join(options: MemberOptions): Promise<Member> {
  const { partition, reads, onBeat = () => {}, onDeath, onFailure = () => {} } = options;
  let heard = performance.now();
  const epoch = await addEpoch(partition, (tx) => encodeBeat({ number: 0, oldestRead: -1, at: tx.now }));
  let number = 0;
  /** Beats that were acknowledged, and the first read that can have begun after each. */
  let acknowledged = [{ number: 0, read: reads.next() }];
  /** How many views were begun; those that some read may still reach behind; up to which none does. */
  let begun = 0;
  const open: { readonly number: number; readonly view: View }[] = [];
  let passed = 0;
  const waiting = createWaiting();
  /** The last number of each of the others, and in how many views it stood still. */
  const silent = new Map<bigint, { number: number; views: number }>();
  let elected = false;
  let isDead = false;
  const background = startBackground(run, options.everyMilliseconds ?? EVERY_MILLISECONDS);

  async function run(): Promise<void> {
    if (isDead) return;
    try {
      await beat();
      const view = await look();
      judge(view);
      await bury(view);
    } catch (error) {
      if (!background.isStopping) onFailure(error);
      return;
    }
    if (!isDead) onBeat();
  }

  async function beat(): Promise<void> {
    const started = performance.now();
    const next = ++number;
    const oldestRead = oldestReach();
    const { value: isAlive } = await partition.transact(epochKey(epoch), async (tx) => {
      if (!(await tx.get(epochKey(epoch)))) return false;
      tx.put(beatKey(epoch), encodeBeat({ number: next, oldestRead, at: tx.now }));
      return true;
    });
    if (!isAlive) return die();
    heard = started;
    acknowledged.push({ number: next, read: reads.next() });
  }

  /** A read that begins later reaches no further back. */
  function oldestReach(): number {
    const oldest = reads.oldest();
    const last = acknowledged.findLastIndex(({ read }) => read <= oldest);
    acknowledged = acknowledged.slice(last);
    return acknowledged[0]!.number;
  }

  async function look(): Promise<View> {
    const view = ++begun;
    const beats = await partition.read(viewOf);
    open.push({ number: view, view: beats });
    return beats;
  }

  function judge(view: View): void {
    elected = view.has(epoch) && [...view.keys()].every((other) => other >= epoch);
    while (open.length > 0 && isBehindAll(open[0]!.view, view)) passed = open.shift()!.number;
    waiting.wake(passed);
    for (const other of silent.keys()) if (!view.has(other)) silent.delete(other);
    for (const [other, { number: told }] of view) {
      const known = silent.get(other);
      if (known?.number === told) known.views++;
      else silent.set(other, { number: told, views: 0 });
    }
  }

  /** Its epoch goes before its bytes may: it might only have been slow. */
  async function bury(view: View): Promise<void> {
    for (const [other, { number: told, at }] of view) {
      if (other === epoch || silent.get(other)!.views < SILENT_BEATS) continue;
      await partition.transact(epochKey(other), async (tx) => {
        const row = await tx.get(beatKey(other));
        if ((row && decodeBeat(row).number !== told) || tx.now - at < SILENT_TICKS) return;
        removeEpoch(tx, other);
      });
    }
  }

  function die(): void {
    isDead = true;
    elected = false;
    reads.cutAll();
    onDeath();
  }

  const isCurrent = (): boolean => !isDead && performance.now() - heard < CURRENT_MILLISECONDS;
  const member: Member = {
    epoch,
    horizon: {
      next: () => begun + 1,
      oldest: () => passed,
      ended: (before) => waiting.until(before, passed),
    },
    reads: {
      ...reads,
      begin() {
        // Woken after a long sleep, it does not know yet whether the others still wait for its reads.
        if (!isCurrent()) throw new Unavailable('This process has lost touch with the store.');
        return reads.begin();
      },
    },
    isElected: () => elected,
    isCurrent,
    isDead: () => isDead,
    async beat() {
      background.wake();
      await background.idle();
    },
    stop: background.stop,
    async leave() {
      await background.stop();
      if (!isDead) await partition.transact(epochKey(epoch), async (tx) => removeEpoch(tx, epoch));
    },
  };
  await member.beat();
  return member;
}

/** Whether no read that began before the first view can be running at the second. */
function isBehindAll(first: View, second: View): boolean {
  for (const [epoch, { oldestRead }] of second) {
    const then = first.get(epoch);
    if (then && oldestRead <= then.number) return false;
  }
  return true;
}

/** Of all that live, whether they have a beat or not. */
async function viewOf(at: Snapshot): Promise<View> {
  const [living, beats] = await Promise.all([livingEpochs(at), at.scan(beatsIn(), { limit: MEMBERS_MAX })]);
  const known = new Map(beats.map((row) => [epochIn(row.key), decodeBeat(row)]));
  return new Map([...living].map((epoch) => [epoch, known.get(epoch) ?? { number: -1, oldestRead: -2, at: 0n }]));
}

function encodeBeat({ number, oldestRead, at }: Beat): Buffer {
  return encodeValue({ number, oldestRead, at: at.toString() });
}

function decodeBeat(row: Row): Beat {
  const { number, oldestRead, at } = decodeValue<{ number: number; oldestRead: number; at: string }>(row);
  return { number, oldestRead, at: BigInt(at) };
}
