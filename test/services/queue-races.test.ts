import { describe, expect, it } from 'vitest';
import {
  clearMessages,
  deleteMessage,
  getMessages,
  peekMessages,
  putMessage,
  updateMessage,
} from '../../src/services/queue/messages.ts';
import {
  createQueue,
  deleteQueue,
  getQueueAcl,
  getQueueMetadata,
  setQueueAcl,
  setQueueMetadata,
} from '../../src/services/queue/queues.ts';
import { openQueues, QUEUE } from '../support/queue-storage.ts';

const queue = QUEUE;
const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

describe('Clear Messages', () => {
  it('that races puts and gets leaves just what was put behind it', async () => {
    const world = await openQueues();
    const processes = [world.storage, world.beside(), world.beside()];
    const outcomes = new Set<string>();
    for (let round = 0; round < 100; round++) {
      const [a, b, c] = [0, 1, 2].map((i) => processes[(round + i) % 3]!) as [never, never, never];
      await putMessage(a, { queue, text: 'before' });
      const racing = {
        put: () => putMessage(a, { queue, text: 'beside' }),
        clear: () => clearMessages(b, { queue }),
        get: () => getMessages(c, { queue, count: 1, visibilitySeconds: 600 }),
      };
      const order = (
        [
          ['put', 'clear', 'get'],
          ['get', 'clear', 'put'],
          ['clear', 'put', 'get'],
        ] as const
      )[round % 3]!;
      const answers = Object.fromEntries(
        await Promise.all(order.map(async (name) => [name, await racing[name]()] as const)),
      ) as { get: Awaited<ReturnType<typeof getMessages>> };
      await putMessage(b, { queue, text: 'behind' });
      const left = (await peekMessages(c, { queue, count: 32 })).map(({ text }) => text);
      const taken = answers.get.map(({ text }) => text);
      outcomes.add([...taken, '|', ...left].join(' '));
      // What was taken from the old generation is gone with it, whatever its receipt says.
      for (const { id, popReceipt, text } of answers.get) {
        const done = deleteMessage(a, { queue, messageId: id, popReceipt });
        if (text === 'before') await expect(done).rejects.toMatchObject({ code: 'MessageNotFound' });
        else await done.catch((error) => expect(error).toMatchObject({ code: 'MessageNotFound' }));
      }
      if (round % 10 === 0) expect(await world.findings()).toEqual([]);
      await clearMessages(a, { queue });
    }
    const legal = ['| behind', '| beside behind', 'before | behind', 'before | beside behind', 'beside | behind'];
    expect([...outcomes].filter((outcome) => !legal.includes(outcome))).toEqual([]);
    expect(outcomes.size).toBeGreaterThan(1);
    await world.sweep();
    expect(await world.kinds()).toEqual({ n: 1, p: 1 });
  }, 60_000);

  it('costs the same for many messages as for one, and the rows go in the background', async () => {
    const world = await openQueues();
    for (let i = 0; i < 30; i++)
      await Promise.all(times(100, () => putMessage(world.storage, { queue, text: 'text' })));
    const before = { ...world.seen };
    await clearMessages(world.storage, { queue });
    expect(world.seen.rows - before.rows).toBeLessThan(5);
    expect(world.seen.commits - before.commits).toBe(1);
    expect(await getMessages(world.storage, { queue, count: 32, visibilitySeconds: 1 })).toEqual([]);
    expect((await getQueueMetadata(world.storage, { queue })).approximateMessages).toBe(0);
    expect(await world.findings()).toEqual([]);
    await world.sweep();
    expect(await world.kinds()).toEqual({ n: 1, p: 1 });
    expect(world.seen.most).toBeLessThanOrEqual(1_000);
  });
});

describe('A queue that is deleted and made again', () => {
  it('has nothing of the old one, and the old one leaves nothing behind', async () => {
    const world = await openQueues();
    const { storage } = world;
    const put = await putMessage(storage, { queue, text: 'old' });
    const acts = await Promise.allSettled([
      deleteQueue(storage, { queue }),
      ...times(20, () => putMessage(world.beside(), { queue, text: 'racing' })),
    ]);
    for (const { reason } of acts.filter((act) => act.status === 'rejected')) {
      expect(reason).toMatchObject({ code: 'QueueNotFound' });
    }
    expect(await createQueue(storage, { queue, metadata: [] })).toBe('created');
    expect(await peekMessages(storage, { queue, count: 32 })).toEqual([]);
    const message = { queue, messageId: put.id, popReceipt: put.popReceipt };
    await expect(deleteMessage(storage, message)).rejects.toMatchObject({ code: 'MessageNotFound' });
    expect(await world.findings()).toEqual([]);
    await world.sweep();
    expect(await world.kinds()).toEqual({ n: 1, p: 1 });
  });
});

describe('A message that expires between the decision and the commit', () => {
  const late = async () => {
    let delay = 0;
    const world = await openQueues('memory', async () => {
      if (delay > 0) await world.advance(delay);
      delay = 0;
      return undefined;
    });
    const message = await putMessage(world.storage, { queue, text: 'text', ttlSeconds: 100 });
    return {
      world,
      held: { queue, messageId: message.id, popReceipt: message.popReceipt },
      expire: () => {
        delay = 101;
      },
    };
  };

  it('is not handed out', async () => {
    const { world, expire } = await late();
    expire();
    expect(await getMessages(world.storage, { queue, count: 1, visibilitySeconds: 30 })).toEqual([]);
    expect(await world.findings()).toEqual([]);
  });

  it('is not there for the holder of its receipt either', async () => {
    const { world, held, expire } = await late();
    expire();
    await expect(deleteMessage(world.storage, held)).rejects.toMatchObject({ code: 'MessageNotFound' });
    const again = await late();
    again.expire();
    await expect(updateMessage(again.world.storage, { ...again.held, visibilitySeconds: 5 })).rejects.toMatchObject({
      code: 'MessageNotFound',
    });
    expect(await world.findings()).toEqual([]);
  });
});

describe('Set Queue Metadata and Set Queue ACL at the same time', () => {
  it('lose nothing of each other', async () => {
    const world = await openQueues();
    const [one, other] = [world.storage, world.beside()];
    for (let i = 0; i < 50; i++) {
      const policies = [{ id: String(i) }];
      await Promise.all([
        setQueueMetadata(one, { queue, metadata: [['round', String(i)]] }),
        setQueueAcl(other, { queue, policies }),
      ]);
      expect((await getQueueMetadata(other, { queue })).metadata).toEqual({ round: String(i) });
      expect(await getQueueAcl(one, { queue })).toEqual(policies);
    }
  });
});
