/**
 * A queue's messages as the host of Azure Functions works through them: up to 16 at a time, renewed while they are worked on, given
 * back where that failed, and put aside after the fifth time. It goes on over every failure of the server.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { DequeuedMessageItem, QueueClient } from '@azure/storage-queue';

const BATCH = 16;
/** More are fetched when no more than these are left. */
const FEW = BATCH / 2;
const DEQUEUES_MAX = 5;
export const HIDDEN_SECONDS = 600;
const HIDDEN_MILLISECONDS = HIDDEN_SECONDS * 1_000;

/** One time that a message was handed out, as its holder knows it. Times are the server's, in whole seconds. */
export interface Delivery {
  readonly id: string;
  readonly text: string;
  readonly dequeueCount: number;
  readonly takenAt: number;
  /** No other client may get it before. */
  hiddenUntil: number;
  /** The client tried to make it visible again, whether or not the server confirmed it. */
  returned: boolean;
  deleted: boolean;
}

export interface HostOptions {
  /** Undefined while there is no server. */
  readonly queue: () => QueueClient | undefined;
  readonly poison: () => QueueClient | undefined;
  /** Throws where the work fails. */
  readonly work: (text: string, delivery: Delivery) => Promise<void>;
  readonly onDelivery: (delivery: Delivery) => void;
  readonly onDone: (text: string) => void;
  readonly onPoison: (text: string) => void;
}

interface Held {
  readonly delivery: Delivery;
  popReceipt: string;
}

export function startHost(options: HostOptions) {
  const held = new Set<Held>();
  let stopped = false;

  async function fetch(): Promise<readonly DequeuedMessageItem[]> {
    const queue = options.queue();
    if (!queue) return [];
    const asked = { numberOfMessages: BATCH, visibilityTimeout: HIDDEN_SECONDS };
    return (await quietly(() => queue.receiveMessages(asked)))?.receivedMessageItems ?? [];
  }

  function hold({ messageId, messageText, dequeueCount, nextVisibleOn, popReceipt }: DequeuedMessageItem): Held {
    const hiddenUntil = nextVisibleOn.valueOf();
    const delivery: Delivery = {
      id: messageId,
      text: messageText,
      dequeueCount,
      takenAt: hiddenUntil - HIDDEN_MILLISECONDS,
      hiddenUntil,
      returned: false,
      deleted: false,
    };
    options.onDelivery(delivery);
    return { delivery, popReceipt };
  }

  async function handle(one: Held): Promise<void> {
    held.add(one);
    const { delivery } = one;
    const hasFailed = await options.work(delivery.text, delivery).then(
      () => false,
      () => true,
    );
    held.delete(one);
    if (!hasFailed) {
      options.onDone(delivery.text);
      await remove(one);
    } else if (delivery.dequeueCount < DEQUEUES_MAX) {
      delivery.returned = true;
      await quietly(() => options.queue()?.updateMessage(delivery.id, one.popReceipt, undefined, 0));
    } else if (await quietly(() => options.poison()?.sendMessage(delivery.text))) {
      options.onPoison(delivery.text);
      await remove(one);
    }
  }

  async function remove({ delivery, popReceipt }: Held): Promise<void> {
    if (await quietly(() => options.queue()?.deleteMessage(delivery.id, popReceipt))) delivery.deleted = true;
  }

  async function loop(): Promise<void> {
    const working = new Set<Promise<void>>();
    while (!stopped) {
      const fetched = working.size > FEW ? [] : await fetch();
      for (const message of fetched) {
        const done: Promise<void> = handle(hold(message)).then(() => void working.delete(done));
        working.add(done);
      }
      if (fetched.length === 0) await Promise.race([...working, pause(5)]);
    }
    await Promise.all(working);
  }

  const ended = loop();
  return {
    /** Renews at half of the visibility timeout, as the timer of a host does. A message that cannot be renewed is processed all the same. */
    async renew(): Promise<void> {
      await Promise.all(
        [...held].map(async (one) => {
          const { delivery, popReceipt } = one;
          const renewed = await quietly(() =>
            options.queue()?.updateMessage(delivery.id, popReceipt, undefined, HIDDEN_SECONDS),
          );
          if (!renewed) return;
          one.popReceipt = renewed.popReceipt!;
          delivery.hiddenUntil = renewed.nextVisibleOn!.valueOf();
        }),
      );
    },
    async stop(): Promise<void> {
      stopped = true;
      await ended;
    },
  };
}

/** Undefined: it failed, or its outcome is unknown. */
async function quietly<T>(call: () => Promise<T> | undefined): Promise<T | undefined> {
  try {
    return await call();
  } catch {
    return undefined;
  }
}

/** Violations in the record of all deliveries. */
export function faultsOf(deliveries: readonly Delivery[]): string[] {
  const faults: string[] = [];
  for (const id of new Set(deliveries.map((delivery) => delivery.id))) {
    const times = deliveries
      .filter((delivery) => delivery.id === id)
      .sort((one, other) => one.dequeueCount - other.dequeueCount);
    for (const [at, next] of times.entries()) {
      const before = times[at - 1];
      if (!before) continue;
      const who = `${next.text} (${next.id}), time ${next.dequeueCount} behind time ${before.dequeueCount}`;
      if (next.dequeueCount === before.dequeueCount) faults.push(`${who}: handed out twice as the same`);
      if (before.deleted) faults.push(`${who}: handed out though it was deleted`);
      if (!before.returned && next.takenAt < before.hiddenUntil)
        faults.push(`${who}: handed out ${(before.hiddenUntil - next.takenAt) / 1_000} s before its time`);
    }
  }
  return faults;
}
