import { describe, expect, it } from 'vitest';
import { countMessage, encodeMessage, messageKey } from '../../src/services/queue/message-rows.ts';
import {
  deleteMessage,
  getMessages,
  peekMessages,
  putMessage,
  updateMessage,
} from '../../src/services/queue/messages.ts';
import { getQueueMetadata } from '../../src/services/queue/queues.ts';
import { readQueue, txQueueKey } from '../../src/services/queue/rows.ts';
import { ACCOUNT, openQueues, QUEUE, type QueueWorld } from '../support/queue-storage.ts';

const queue = QUEUE;
const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

/** As rows, a thousand a commit: they can be seen at once, and expire so much later. */
async function fill({ storage }: QueueWorld, count: number, ttlTicks: bigint): Promise<void> {
  for (let from = 0; from < count; from += 1_000) {
    const slice = Math.min(1_000, count - from);
    await storage.partition.transact(txQueueKey(ACCOUNT, queue), async (tx) => {
      const found = await readQueue(tx, storage, queue);
      for (let i = 0; i < slice; i++) {
        const id = { inserted: tx.timestamp, salt: BigInt(from + i) };
        const text = Buffer.from(`message ${from + i}`);
        const rest = { expires: tx.now + ttlTicks, nonce: 1n, dequeueCount: 0, text };
        const message = { id, visibleAt: tx.now, ...rest };
        tx.put(messageKey(found, tx.now, id), encodeMessage(message));
        countMessage(tx, found, message, 1);
      }
    });
  }
}

const DAY = 24n * 3_600n * 10_000_000n;

async function costs(depth: number): Promise<Record<string, number>> {
  const world = await openQueues();
  const { storage, seen } = world;
  await fill(world, depth, DAY);
  const cost = async <T>(act: () => Promise<T>): Promise<[number, T]> => {
    const before = seen.rows;
    const value = await act();
    return [seen.rows - before, value];
  };
  const [put] = await cost(() => putMessage(storage, { queue, text: 'text' }));
  const [peek] = await cost(() => peekMessages(storage, { queue, count: 1 }));
  const [get, messages] = await cost(() => getMessages(storage, { queue, count: 1, visibilitySeconds: 30 }));
  const held = { queue, messageId: messages[0]!.id, popReceipt: messages[0]!.popReceipt };
  const [update, { popReceipt }] = await cost(() => updateMessage(storage, { ...held, visibilitySeconds: 60 }));
  const [remove] = await cost(() => deleteMessage(storage, { ...held, popReceipt }));
  const [count] = await cost(() => getQueueMetadata(storage, { queue }));
  // Of the counters there are eight at most.
  expect(count).toBeLessThanOrEqual(13);
  const [getFive] = await cost(() => getMessages(storage, { queue, count: 5, visibilitySeconds: 30 }));
  return { put, peek, get, update, remove, getFive };
}

describe('The cost of a message', () => {
  it('is the same in a queue of 100,000 as in one of 10', async () => {
    const [few, many] = [await costs(10), await costs(100_000)];
    expect(many).toEqual(few);
    expect(Math.max(few.put!, few.update!, few.remove!, few.peek!)).toBeLessThanOrEqual(3);
    expect(few.get).toBeLessThanOrEqual(4);
  }, 60_000);

  it('does not rise with those that hide', async () => {
    const world = await openQueues();
    await fill(world, 3_200, DAY);
    await Promise.all(times(100, () => getMessages(world.storage, { queue, count: 32, visibilitySeconds: 30 })));
    const before = world.seen.rows;
    expect(await getMessages(world.storage, { queue, count: 32, visibilitySeconds: 30 })).toEqual([]);
    expect(world.seen.rows - before).toBeLessThanOrEqual(4);
  });

  it('of 64 consumers who wait together is that of the messages which they take', async () => {
    const world = await openQueues();
    await fill(world, 1_000, DAY);
    const before = world.seen.rows;
    const taken = await Promise.all(
      times(64, () => getMessages(world.storage, { queue, count: 1, visibilitySeconds: 30 })),
    );
    expect(new Set(taken.flat().map(({ id }) => id)).size).toBe(64);
    expect(world.seen.rows - before).toBeLessThanOrEqual(64 * 2 + 10);
  });
});

describe('A message that is gone', () => {
  it('leaves no row behind, whoever deletes it', async () => {
    const world = await openQueues();
    const before = await world.kinds();
    await Promise.all(times(20, (i) => putMessage(world.storage, { queue, text: String(i), ttlSeconds: 60 + i })));
    const taken = await getMessages(world.beside(), { queue, count: 20, visibilitySeconds: 30 });
    for (const { id, popReceipt } of taken) {
      await deleteMessage(world.storage, { queue, messageId: id, popReceipt });
    }
    expect(await world.kinds()).toEqual(before);
  });
});

describe('Messages that have expired', () => {
  it('at the head of the line are dropped by who meets them, a bounded number a commit, each once', async () => {
    const world = await openQueues();
    const { storage, seen } = world;
    await fill(world, 20_000, 10_000_000n);
    await world.advance(2);
    await putMessage(storage, { queue, text: 'the one' });
    seen.most = 0;
    const [first, second, peeked] = await Promise.all([
      getMessages(storage, { queue, count: 1, visibilitySeconds: 30 }),
      getMessages(world.beside(), { queue, count: 1, visibilitySeconds: 30 }),
      peekMessages(storage, { queue, count: 1 }),
    ]);
    expect([...first, ...second].map(({ text }) => text)).toEqual(['the one']);
    expect(peeked.length).toBeLessThanOrEqual(1);
    expect(seen.most).toBeLessThanOrEqual(1_000);
    expect(await world.kinds()).toMatchObject({ q: 1 });
    expect((await getQueueMetadata(storage, { queue })).approximateMessages).toBe(1);
    expect(await world.findings()).toEqual([]);
    const before = seen.rows;
    await getMessages(storage, { queue, count: 1, visibilitySeconds: 30 });
    expect(seen.rows - before).toBeLessThan(6);
  }, 60_000);

  it('do not make a queue look empty that holds others behind them', async () => {
    const world = await openQueues();
    await fill(world, 5_000, 10_000_000n);
    await world.advance(2);
    for (let i = 0; i < 40; i++) await putMessage(world.storage, { queue, text: String(i) });
    const texts: string[] = [];
    for (let messages = [{ text: '' }]; messages.length > 0; ) {
      messages = [...(await getMessages(world.storage, { queue, count: 32, visibilitySeconds: 30 }))];
      texts.push(...messages.map(({ text }) => text));
    }
    expect(texts).toEqual(times(40, String));
  });

  it('do not hide those behind them from who only peeks', async () => {
    const world = await openQueues();
    await fill(world, 5_000, 10_000_000n);
    await world.advance(2);
    for (let i = 0; i < 3; i++) await putMessage(world.storage, { queue, text: String(i) });
    const peeked = await peekMessages(world.storage, { queue, count: 32 });
    expect(peeked.map(({ text }) => text)).toEqual(['0', '1', '2']);
  });

  it('are not counted where they lie at the head', async () => {
    const world = await openQueues();
    await fill(world, 300, 10_000_000n);
    await world.advance(2);
    await putMessage(world.storage, { queue, text: 'alive' });
    expect((await getQueueMetadata(world.storage, { queue })).approximateMessages).toBe(1);
  });

  it('go in the background where nobody meets them, however they hide', async () => {
    const world = await openQueues();
    const { storage } = world;
    await fill(world, 1_000, 3_600n * 10_000_000n);
    await Promise.all(times(20, () => getMessages(storage, { queue, count: 32, visibilitySeconds: 604_800 })));
    await putMessage(storage, { queue, text: 'hides', visibilitySeconds: 604_000 });
    await world.sweep();
    expect(await world.kinds()).toMatchObject({ q: 1_001 });
    await world.advance(4_000);
    await world.sweep();
    expect(await world.kinds()).toMatchObject({ q: 1 });
    expect((await getQueueMetadata(storage, { queue })).approximateMessages).toBe(1);
    expect(world.failures).toEqual([]);
    expect(await world.findings()).toEqual([]);
    const { rows } = world.seen;
    await world.advance(1_800);
    await world.sweep();
    // It is too soon to look again at the messages.
    expect(world.seen.rows - rows).toBeLessThan(10);
  });

  it('are dropped once, though consumers and the walk meet them at the same time', async () => {
    const world = await openQueues();
    await fill(world, 4_000, 3_600n * 10_000_000n);
    await world.sweep();
    await world.advance(4_000);
    const other = world.beside();
    await Promise.all([
      world.sweep(),
      ...times(8, (i) => getMessages(i % 2 ? other : world.storage, { queue, count: 1, visibilitySeconds: 1 })),
      peekMessages(other, { queue, count: 1 }),
      getQueueMetadata(other, { queue }),
    ]);
    expect((await getQueueMetadata(world.storage, { queue })).approximateMessages).toBe(0);
    expect((await world.kinds()).q).toBeUndefined();
    expect(await world.findings()).toEqual([]);
    expect(world.failures).toEqual([]);
  });
});
