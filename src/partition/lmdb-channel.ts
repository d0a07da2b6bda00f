/**
 * Memory that the writer's thread shares with its owner. Groups of commits lie in slots, used in turns, and the writer waits there for more:
 * a message costs each side several times as much as to look, and at one client that is most of the way.
 */
import type { MessagePort } from 'node:worker_threads';
import { type Judged, pack } from './lmdb-parcel.ts';

/** Groups that are under way at once; what comes meanwhile goes together. */
const SLOTS = 8;
const SLOT_BYTES = 128 << 10;
/** How long the writer waits here before only a message wakes it. */
const LINGER_MILLISECONDS = 2;
/** How long the owner waits for a commit that is about to be seen: first awake, as it would take longer to be woken. */
const AWAKE_MILLISECONDS = 0.05;
const PATIENCE_MILLISECONDS = 1;

// The words of `control`. Counts of groups go round at 32 bits.
/** How many groups there were. */
const SENT = 0;
/** 1 while the writer is not to be found here. */
const ASLEEP = 1;
/** How many groups were decided, of which the last may not be seen yet. */
const ANNOUNCED = 2;
/** From here on, by slot: how many bytes; 0: they come by message. */
const LENGTHS = 8;
/** From here on, by slot: what became of the group. */
const FATES = LENGTHS + SLOTS;
const CONTROL_BYTES = 256;

const PENDING = 0;
const COMMITTED = 1;
/** A message says what it is. */
const OTHER = 2;

export function newChannelMemory(): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(CONTROL_BYTES + SLOTS * SLOT_BYTES);
  controlOf(memory)[ASLEEP] = 1;
  return memory;
}

export interface Sender {
  isFull(): boolean;
  send(commits: readonly Judged[]): void;
  /** How many more groups were committed, all of them; called at each message. */
  settled(): number;
  /** The group that came behind those was told by a message. */
  toldOf(): void;
}

/** @param lookAgain called when a commit took long to be seen */
export function openSender(
  memory: SharedArrayBuffer,
  wake: () => void,
  large: MessagePort,
  lookAgain: () => void,
): Sender {
  const control = controlOf(memory);
  const slots = slotsOf(memory);
  let sent = 0;
  let known = 0;
  /** The group for which it was waited long enough. */
  let late = -1;

  function fateOf(word: number): number {
    if (known === late) return Atomics.load(control, word);
    const awakeUntil = performance.now() + AWAKE_MILLISECONDS;
    while (Atomics.load(control, word) === PENDING) {
      if (performance.now() < awakeUntil) continue;
      Atomics.wait(control, word, PENDING, PATIENCE_MILLISECONDS);
      break;
    }
    return Atomics.load(control, word);
  }

  return {
    isFull: () => sent - known === SLOTS,
    send(commits) {
      const slot = sent % SLOTS;
      const bytes = pack(commits, (length) =>
        length <= SLOT_BYTES ? slots[slot]!.subarray(0, length) : new Uint8Array(length),
      );
      const isLarge = bytes.length > SLOT_BYTES;
      if (isLarge) large.postMessage(bytes, [bytes.buffer as ArrayBuffer]);
      control[LENGTHS + slot] = isLarge ? 0 : bytes.length;
      control[FATES + slot] = PENDING;
      Atomics.store(control, SENT, ++sent | 0);
      if (Atomics.exchange(control, ASLEEP, 0) === 1) wake();
      else Atomics.notify(control, SENT);
    },
    settled() {
      const before = known;
      for (const announced = Atomics.load(control, ANNOUNCED); (known | 0) !== announced; known++) {
        const found = fateOf(FATES + (known % SLOTS));
        if (found === PENDING) {
          late = known;
          setTimeout(lookAgain, PATIENCE_MILLISECONDS);
        }
        if (found !== COMMITTED) break;
      }
      return known - before;
    },
    toldOf() {
      known++;
    },
  };
}

export interface Receiver {
  /** The groups that are there, at least the first, together about so many bytes. Their bytes are good until they are settled. */
  take(bytesMax: number): Uint8Array[];
  /** The one group that was taken is decided and will be seen in a moment: the owner wakes up meanwhile. */
  announce(): void;
  /** What became of the group taken first; whether the owner is to be told more by a message. */
  settle(isCommitted: boolean): void;
  /** Whether there is more, now or soon. If not, a message will come. */
  lingers(): boolean;
}

export function openReceiver(memory: SharedArrayBuffer, nextLarge: () => Uint8Array): Receiver {
  const control = controlOf(memory);
  const slots = slotsOf(memory);
  let taken = 0;
  let settled = 0;

  const hasMore = (): boolean => Atomics.load(control, SENT) !== (taken | 0);

  return {
    take(bytesMax) {
      const groups: Uint8Array[] = [];
      for (let bytes = 0; bytes < bytesMax && hasMore(); taken++) {
        const slot = taken % SLOTS;
        const length = control[LENGTHS + slot]!;
        const group = length === 0 ? nextLarge() : slots[slot]!.subarray(0, length);
        groups.push(group);
        bytes += group.length;
      }
      return groups;
    },
    announce: () => void Atomics.store(control, ANNOUNCED, (settled + 1) | 0),
    settle(isCommitted) {
      const fate = FATES + (settled++ % SLOTS);
      Atomics.store(control, fate, isCommitted ? COMMITTED : OTHER);
      Atomics.store(control, ANNOUNCED, settled | 0);
      Atomics.notify(control, fate);
    },
    lingers() {
      if (hasMore() || Atomics.wait(control, SENT, taken | 0, LINGER_MILLISECONDS) !== 'timed-out') return true;
      Atomics.store(control, ASLEEP, 1);
      // If the owner saw that meanwhile, its message is on the way.
      return hasMore() && Atomics.exchange(control, ASLEEP, 0) === 1;
    },
  };
}

const controlOf = (memory: SharedArrayBuffer): Int32Array => new Int32Array(memory, 0, CONTROL_BYTES / 4);

function slotsOf(memory: SharedArrayBuffer): Uint8Array[] {
  return Array.from({ length: SLOTS }, (_, i) => new Uint8Array(memory, CONTROL_BYTES + i * SLOT_BYTES, SLOT_BYTES));
}
