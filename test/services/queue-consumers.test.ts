import { describe, expect, it } from 'vitest';
import type { Storage } from '../../src/services/common/storage.ts';
import type { Message } from '../../src/services/queue/message-rows.ts';
import { deleteMessage, getMessages, putMessage, updateMessage } from '../../src/services/queue/messages.ts';
import { createQueue, getQueueMetadata } from '../../src/services/queue/queues.ts';
import { engines, openQueues, QUEUE, type QueueWorld } from '../support/queue-storage.ts';

const queue = QUEUE;
const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const put = (storage: Storage, text: string) => putMessage(storage, { queue, text });
const remove = (storage: Storage, { id, popReceipt }: Message) =>
  deleteMessage(storage, { queue, messageId: id, popReceipt });

interface Handed {
  readonly id: string;
  readonly from: bigint;
  readonly until: bigint;
}

/** A message is nobody else's until it can be seen again. */
function expectNoOverlap(handed: readonly Handed[]): void {
  const last = new Map<string, Handed>();
  for (const one of handed.toSorted((a, b) => (a.from < b.from ? -1 : 1))) {
    const before = last.get(one.id);
    if (before && before.until > one.from) throw new Error(`${one.id} was handed to two`);
    last.set(one.id, one);
  }
}

/** Every third message is forgotten by whoever has it, and comes back when time has passed. */
async function consume(world: QueueWorld, processes: readonly Storage[], consumers: number, total: number) {
  const handed: Handed[] = [];
  const done = new Set<string>();
  const seconds = 20;
  /** Those who ask for messages, or have some. */
  let busy = 0;
  let timePasses: Promise<void> | undefined;
  const aMoment = () => new Promise<void>((resolve) => setTimeout(resolve, 1));
  /** While nobody works: what somebody has just been given must not come back before he can say that he is done. */
  async function passTime(): Promise<void> {
    while (busy > 0) await aMoment();
    await world.advance(seconds / 4);
    timePasses = undefined;
  }
  const consumer = async (i: number) => {
    const storage = processes[i % processes.length]!;
    while (done.size < total) {
      if (timePasses) {
        await timePasses;
        continue;
      }
      busy++;
      const messages = await getMessages(storage, { queue, count: 1 + (i % 4), visibilitySeconds: seconds });
      for (const message of messages) {
        const until = message.nextVisible;
        handed.push({ id: message.id, from: until - BigInt(seconds) * 10_000_000n, until });
        if (message.dequeueCount > 1 || Number(message.text) % 3 > 0) {
          await remove(storage, message);
          done.add(message.id);
        }
      }
      busy--;
      if (messages.length === 0) timePasses ??= passTime();
    }
  };
  await Promise.all(times(consumers, consumer));
  return { handed, done };
}

describe.each(engines)('Consumers of one queue on %s', (engine) => {
  it('get every message, and none that another still has: 64 of them', async () => {
    const world = await openQueues(engine);
    const total = 600;
    await Promise.all(times(total, (i) => put(world.storage, String(i))));
    world.seen.commits = 0;
    const { handed, done } = await consume(world, [world.storage], 64, total);
    expect(done.size).toBe(total);
    expect(handed.length).toBe(total + Math.ceil(total / 3));
    expectNoOverlap(handed);
    // Those who wait share commits.
    expect(world.seen.commits).toBeLessThan(total / 2);
    expect((await getQueueMetadata(world.storage, { queue })).approximateMessages).toBe(0);
    expect(await world.findings()).toEqual([]);
  }, 60_000);
});

describe('Consumers in three processes', () => {
  it('get every message, and none that another still has', async () => {
    const world = await openQueues();
    const processes = [world.storage, world.beside(), world.beside()];
    const total = 1_500;
    await Promise.all(times(total, (i) => put(processes[i % 3]!, String(i))));
    const { handed, done } = await consume(world, processes, 24, total);
    expect(done.size).toBe(total);
    expectNoOverlap(handed);
    expect((await getQueueMetadata(world.storage, { queue })).approximateMessages).toBe(0);
    expect(await world.findings()).toEqual([]);
  }, 60_000);

  it('and one whose receipt is old never touch the same message both', async () => {
    const world = await openQueues();
    const other = world.beside();
    for (let round = 0; round < 50; round++) {
      await put(world.storage, 'text');
      const [first] = await getMessages(world.storage, { queue, count: 1, visibilitySeconds: 1 });
      await world.advance(1);
      const [second, late] = await Promise.allSettled([
        getMessages(other, { queue, count: 1, visibilitySeconds: 30 }),
        round % 2
          ? remove(world.storage, first!)
          : updateMessage(world.storage, {
              queue,
              messageId: first!.id,
              popReceipt: first!.popReceipt,
              visibilitySeconds: 30,
            }),
      ]);
      const taken = second.status === 'fulfilled' ? second.value.length : -1;
      expect({ taken, late: late.status }).toEqual(
        taken === 1 ? { taken: 1, late: 'rejected' } : { taken: 0, late: 'fulfilled' },
      );
      await world.advance(60);
      for (const message of await getMessages(other, { queue, count: 32, visibilitySeconds: 1 })) {
        await remove(other, message);
      }
    }
  });
});

describe('Get Messages', () => {
  it('gives messages in the order in which they were put, to those who wait in the order in which they came', async () => {
    const { storage } = await openQueues();
    for (let i = 0; i < 300; i++) await put(storage, String(i));
    const answers = await Promise.all(
      times(60, () => getMessages(storage, { queue, count: 5, visibilitySeconds: 30 })),
    );
    expect(answers.flat().map(({ text }) => Number(text))).toEqual(times(300, (i) => i));
  });

  it('tells each who waits for himself that the queue is not the one that he was let in for', async () => {
    const { storage } = await openQueues();
    await put(storage, 'text');
    const input = { queue, count: 1, visibilitySeconds: 30 };
    const [refused, served] = await Promise.allSettled([
      getMessages({ ...storage, granted: { container: 1n } }, input),
      getMessages(storage, input),
    ]);
    expect(refused).toMatchObject({ reason: { code: 'QueueNotFound' } });
    expect(served).toMatchObject({ value: [{ text: 'text' }] });
  });

  it('from 64 queues at once keeps them apart', async () => {
    const { storage } = await openQueues();
    const names = times(64, (i) => `queue-${i}`);
    await Promise.all(
      names.map(async (name) => {
        await createQueue(storage, { queue: name, metadata: [] });
        for (let i = 0; i < 3; i++) await putMessage(storage, { queue: name, text: name });
      }),
    );
    const input = { count: 2, visibilitySeconds: 30 };
    const answers = await Promise.all(
      names.flatMap((name) => times(3, () => getMessages(storage, { queue: name, ...input }))),
    );
    for (const [i, name] of names.entries()) {
      const mine = answers.slice(i * 3, i * 3 + 3).map((messages) => messages.map(({ text }) => text));
      expect(mine).toEqual([[name, name], [name], []]);
    }
  });
});
