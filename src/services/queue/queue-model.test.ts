import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ModelMessage, QueueModel } from '../../../test/support/queue-model.ts';
import { QUEUE, type QueueWorld, startQueues } from '../../../test/support/queue-storage.ts';
import type { Message } from './message-rows.ts';
import { clearMessages, deleteMessage, getMessages, peekMessages, putMessage, updateMessage } from './messages.ts';
import { getQueueMetadata } from './queues.ts';

type Step = (world: QueueWorld, model: QueueModel) => Promise<void>;

/** A unit of time that no slow test run can exceed. */
const K = 1_000;
const queue = QUEUE;
const seen = ({ id, text, dequeueCount }: Message | ModelMessage) => ({ id, text, dequeueCount });
/** Mostly the head of the queue; 99 is an absent message. */
const which = fc.oneof(fc.nat(3), fc.nat(30), fc.constant(99));

const puts = fc
  .record({ text: fc.string({ maxLength: 5 }), hidden: fc.nat(3), life: fc.constantFrom(undefined, -1, 1, 2, 4, 30) })
  .map(
    ({ text, hidden, life }): Step =>
      async ({ storage }, model) => {
        const ttlSeconds = life === undefined || life === -1 ? life : life * K;
        const visibilitySeconds = hidden * K;
        const done = putMessage(storage, { queue, text, visibilitySeconds, ttlSeconds });
        if (ttlSeconds !== undefined && ttlSeconds !== -1 && visibilitySeconds >= ttlSeconds) {
          await expect(done).rejects.toMatchObject({ code: 'InvalidQueryParameterValue' });
          return;
        }
        const { id, popReceipt } = await done;
        model.put(id, popReceipt, text, visibilitySeconds, ttlSeconds ?? 604_800);
      },
  );

const gets = fc.tuple(fc.constantFrom(1, 1, 2, 5, 32), fc.integer({ min: 1, max: 5 })).map(
  ([count, hidden]): Step =>
    async ({ storage }, model) => {
      const messages = await getMessages(storage, { queue, count, visibilitySeconds: hidden * K });
      const expected = model.take(count, hidden * K);
      expect(messages.map(seen)).toEqual(expected.map(seen));
      for (const [i, message] of messages.entries()) expected[i]!.receipt = message.popReceipt;
    },
);

const peeks = fc.constantFrom(1, 3, 32).map(
  (count): Step =>
    async ({ storage }, model) => {
      const messages = await peekMessages(storage, { queue, count });
      expect(messages.map(seen)).toEqual(model.visible(count).map(seen));
    },
);

/** A latest receipt, or an older one, perhaps with the id of another message. */
const receipts = fc.record({ which, isStale: fc.boolean(), other: fc.option(which) });
type Choice = typeof receipts extends fc.Arbitrary<infer T> ? T : never;

function chosen(model: QueueModel, { which: at, isStale, other }: Choice): { id: string; receipt: string } | undefined {
  const list = isStale ? model.stale.toReversed() : model.messages;
  const found = list[at % (list.length + 1)];
  if (!found) return undefined;
  const { id } = (other !== null && model.messages[other]) || found;
  return { id, receipt: found.receipt };
}

const updates = fc
  .record({ choice: receipts, hidden: fc.nat(4), text: fc.option(fc.string({ maxLength: 5 }), { nil: undefined }) })
  .map(
    ({ choice, hidden, text }): Step =>
      async ({ storage }, model) => {
        const named = chosen(model, choice);
        if (!named) return;
        const held = model.held(named.id, named.receipt);
        const visibilitySeconds = hidden * K;
        const message = { queue, messageId: named.id, popReceipt: named.receipt };
        const done = updateMessage(storage, { ...message, visibilitySeconds, text });
        if (!held) await expect(done).rejects.toMatchObject({ code: 'MessageNotFound' });
        else if (model.now + visibilitySeconds >= held.expires)
          await expect(done).rejects.toMatchObject({ code: 'InvalidQueryParameterValue' });
        else model.move(held, (await done).popReceipt, visibilitySeconds, text);
      },
  );

const deletes = receipts.map(
  (choice): Step =>
    async ({ storage }, model) => {
      const named = chosen(model, choice);
      if (!named) return;
      const held = model.held(named.id, named.receipt);
      const done = deleteMessage(storage, { queue, messageId: named.id, popReceipt: named.receipt });
      if (!held) await expect(done).rejects.toMatchObject({ code: 'MessageNotFound' });
      else {
        await done;
        model.remove(held);
      }
    },
);

const waits = fc.constantFrom(0.3, 0.5, 1, 2, 5).map(
  (units): Step =>
    async (world, model) => {
      await world.advance(units * K);
      model.now += units * K;
    },
);

const counts = fc.constant<Step>(async ({ storage }, model) => {
  const { approximateMessages } = await getQueueMetadata(storage, { queue });
  expect(approximateMessages).toBeGreaterThanOrEqual(model.living().length);
  expect(approximateMessages).toBeLessThanOrEqual(model.messages.length);
});

const clears = fc.constant<Step>(async ({ storage }, model) => {
  await clearMessages(storage, { queue });
  model.clear();
});

const steps = fc.array(
  fc.oneof(
    { weight: 10, arbitrary: puts },
    { weight: 8, arbitrary: gets },
    { weight: 3, arbitrary: peeks },
    { weight: 6, arbitrary: updates },
    { weight: 6, arbitrary: deletes },
    { weight: 5, arbitrary: waits },
    { weight: 2, arbitrary: counts },
    { weight: 1, arbitrary: clears },
  ),
  { minLength: 10, maxLength: 80, size: 'max' },
);

/** At the end exactly the messages that have not expired are left, and the counts are right. */
async function play(world: QueueWorld, script: readonly Step[]): Promise<void> {
  const model = new QueueModel();
  for (const step of script) await step(world, model);
  expect(await world.findings()).toEqual([]);
  await world.sweep();
  await world.advance(3_000 * K);
  model.now += 3_000 * K;
  await world.sweep();
  const { approximateMessages } = await getQueueMetadata(world.storage, { queue });
  expect(approximateMessages).toBe(model.living().length);
  const kinds = await world.kinds();
  expect({ left: kinds.q ?? 0, trash: kinds.x ?? 0 }).toEqual({ left: model.living().length, trash: 0 });
  expect(world.failures).toEqual([]);
  expect(await world.findings()).toEqual([]);
}

describe('A queue', () => {
  it.each([
    ['memory', 100],
    ['LMDB', 8],
  ] as const)(
    'on %s behaves as a list of messages in memory',
    async (engine, numRuns) => {
      const property = fc.asyncProperty(steps, fc.nat(2), async (script, conflicts) => {
        let commits = 0;
        const isLost = () => engine === 'memory' && conflicts > 0 && ++commits % 3 < conflicts;
        const world = await startQueues(engine, () => (isLost() ? 'conflict' : undefined));
        try {
          await play(world, script);
        } finally {
          await world.close();
        }
      });
      await fc.assert(property, { numRuns });
    },
    120_000,
  );
});
