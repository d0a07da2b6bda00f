/** Queue consumers: a message that is received is invisible for a time; whoever crashes loses it to another, so the work is idempotent. */
import type { TableClient } from '@azure/data-tables';
import type { QueueClient } from '@azure/storage-queue';
import type { Account, Story } from './story.ts';

const VISIBILITY_SECONDS = 30;
const ORDERS = 12;
const CONSUMERS = 3;

export async function consumeOnce(
  queue: QueueClient,
  done: TableClient,
  account: Account,
  story: Story,
): Promise<void> {
  story.chapter('Consumers of a queue');
  const receive = async () =>
    (await queue.receiveMessages({ visibilityTimeout: VISIBILITY_SECONDS })).receivedMessageItems[0];
  const order = await story.step('A producer sends an order', () => queue.sendMessage('order 1'));
  const first = (await story.step(`Consumer 1 receives it, for ${VISIBILITY_SECONDS} seconds`, receive))!;
  story.fact('Consumer 2 receives', (await receive())?.messageText ?? 'nothing', 'nothing');
  await story.step('Consumer 1 does the work, and notes the id of the message in a table', () =>
    workOnce(done, order.messageId),
  );
  await story.step('Consumer 1 crashes before it deletes the message', () => account.pass(VISIBILITY_SECONDS + 1));
  const second = (await story.step('The message is visible again: consumer 2 receives it', receive))!;
  story.fact('Times that it was received', second.dequeueCount, 2);
  story.fact(
    'Consumer 2 finds the id in the table, so the work was',
    (await workOnce(done, second.messageId)) ? 'done twice' : 'done once',
    'done once',
  );
  await story.refused(
    'Consumer 1 is back and deletes the message, with its old pop receipt',
    404,
    'MessageNotFound',
    () => queue.deleteMessage(first.messageId, first.popReceipt),
  );
  await story.step('Consumer 2 deletes it, with the newest receipt', () =>
    queue.deleteMessage(second.messageId, second.popReceipt),
  );
  await consumeTogether(queue, done, story);
}

async function consumeTogether(queue: QueueClient, done: TableClient, story: Story): Promise<void> {
  for (let number = 0; number < ORDERS; number++) await queue.sendMessage(`order ${number + 2}`);
  const works = await story.step(`${CONSUMERS} consumers empty a queue of ${ORDERS} orders, side by side`, () =>
    Promise.all(Array.from({ length: CONSUMERS }, () => consumeAll(queue, done))),
  );
  story.fact(
    'Orders that were worked on',
    works.reduce((sum, count) => sum + count, 0),
    ORDERS,
  );
}

async function consumeAll(queue: QueueClient, done: TableClient): Promise<number> {
  let count = 0;
  for (;;) {
    const { receivedMessageItems } = await queue.receiveMessages({ visibilityTimeout: VISIBILITY_SECONDS });
    const message = receivedMessageItems[0];
    if (!message) return count;
    if (await workOnce(done, message.messageId)) count++;
    await queue.deleteMessage(message.messageId, message.popReceipt);
  }
}

/**
 * Idempotent: the insert of the id succeeds once, whoever tries. Here it is the work itself; where work and note are in one partition of a
 * table, one transaction holds both.
 */
async function workOnce(done: TableClient, messageId: string): Promise<boolean> {
  try {
    await done.createEntity({ partitionKey: 'done', rowKey: messageId });
    return true;
  } catch (error) {
    if ((error as { statusCode?: number }).statusCode !== 409) throw error;
    return false;
  }
}
