/** Queues for the tests of the Queue service, and requests that Microsoft's client does not make. */
import { randomUUID } from 'node:crypto';
import { AnonymousCredential, newPipeline, QueueClient, QueueServiceClient } from '@azure/storage-queue';
import type { Answer, RawRequest, Running } from './test-server.ts';

export const newName = () => `q-${randomUUID()}`;

/** A new queue with a name of its own. */
export async function newQueue(running: Running, metadata: Record<string, string> = {}): Promise<QueueClient> {
  const queue = running.queues.getQueueClient(newName());
  await queue.create({ metadata });
  return queue;
}

/** A signed request to the Queue service. */
export function ask(running: Running, method: string, path: string, request: RawRequest = {}): Promise<Answer> {
  return running.request(method, path, { of: 'queue', ...request });
}

export function bodyOf(text: string): string {
  return `<QueueMessage><MessageText>${text}</MessageText></QueueMessage>`;
}

const unsigned = newPipeline(new AnonymousCredential(), { retryOptions: { maxTries: 1 } });

/** Clients that have nothing but a shared access signature. */
export const queueWith = ({ url }: QueueClient, sas: string) => new QueueClient(`${url}?${sas}`, unsigned);
export const serviceWith = (running: Running, sas: string) =>
  new QueueServiceClient(`${running.server.queueUrl}?${sas}`, unsigned);

export async function textsIn(queue: QueueClient): Promise<string[]> {
  const { peekedMessageItems } = await queue.peekMessages({ numberOfMessages: 32 });
  return peekedMessageItems.map(({ messageText }) => messageText);
}

/** The one message that is there, which now hides. */
export async function takeOne(queue: QueueClient, visibilityTimeout = 30) {
  const { receivedMessageItems } = await queue.receiveMessages({ numberOfMessages: 32, visibilityTimeout });
  if (receivedMessageItems.length !== 1) throw new Error(`There are ${receivedMessageItems.length} messages.`);
  return receivedMessageItems[0]!;
}
