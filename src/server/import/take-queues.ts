/** Queues and messages of Azurite. */

import { restoreMessages } from '../../services/queue/messages.ts';
import type { RestoredMessage } from '../../services/queue/put-message.ts';
import { createQueue, setQueueAcl } from '../../services/queue/queues.ts';
import { attempt, groupBy, together } from './attempts.ts';
import { instantOf, metadataOf, persistencyOf, policiesOf, textOf } from './azurite-documents.ts';
import type { ImportedDocument, ImportTarget } from './import-kinds.ts';
import type { LokiDocument } from './loki-file.ts';

export async function takeQueues(documents: readonly ImportedDocument[], target: ImportTarget): Promise<void> {
  for (const { document } of documents) {
    const queue = String(document.name);
    await attempt(queue, target, async () => {
      const storage = target.storage(textOf(document, 'accountName'));
      await createQueue(storage, { queue, metadata: metadataOf(document) });
      const policies = policiesOf(document.queueAcl, 'queue');
      if (policies.length > 0) await setQueueAcl(storage, { queue, policies });
    });
  }
}

/** Those of one queue are one commit. */
export async function takeMessages(documents: readonly ImportedDocument[], target: ImportTarget): Promise<void> {
  const found: FoundMessage[] = [];
  for (const { document } of documents) {
    const name = `${document.queueName}/${document.messageId}`;
    await attempt(name, target, async () => {
      const [account, queue] = [textOf(document, 'accountName'), textOf(document, 'queueName')];
      found.push({ name, account, queue, message: await restoredMessage(document, target) });
    });
  }
  for (const group of groupBy(found, ({ account, queue }) => `${account}/${queue}`)) {
    const { account, queue } = group[0]!;
    await together(group, target, (messages) =>
      restoreMessages(target.storage(account), { queue, messages: messages.map(({ message }) => message) }),
    );
  }
}

interface FoundMessage {
  readonly name: string;
  readonly account: string;
  readonly queue: string;
  readonly message: RestoredMessage;
}

async function restoredMessage(document: LokiDocument, { folder }: ImportTarget): Promise<RestoredMessage> {
  const content = await folder.content('queue', persistencyOf(document.persistency));
  const pieces: Uint8Array[] = [];
  for await (const piece of content.bytes()) pieces.push(piece);
  return {
    text: Buffer.concat(pieces).toString(),
    inserted: instantOf(document, 'insertionTime'),
    visibleAt: instantOf(document, 'timeNextVisible'),
    expires: instantOf(document, 'expirationTime'),
    dequeueCount: Number(document.dequeueCount ?? 0),
  };
}
