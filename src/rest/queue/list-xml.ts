/** XML of the Queue service's responses. */
import { formatRfc1123 } from '../../base/time.ts';
import { nextSlice } from '../../base/time-slices.ts';
import { escapeXml } from '../../base/xml.ts';
import type { ListedQueue } from '../../services/queue/listing.ts';
import type { Message } from '../../services/queue/message-rows.ts';
import { element, type ListParameters, metadataElements, parameterElements } from '../xml/list-elements.ts';

export function queueListStart(endpoint: string, parameters: ListParameters): Buffer {
  return Buffer.from(`<EnumerationResults ServiceEndpoint="${escapeXml(endpoint)}">${parameterElements(parameters)}`);
}

/** The first queue opens the element around them: without queues it is an empty element. */
export function createQueueListWriter(withMetadata: boolean) {
  let isOpen = false;
  return {
    queues(queues: readonly ListedQueue[]): Buffer {
      let xml = isOpen ? '' : '<Queues>';
      isOpen = true;
      for (const { name, metadata } of queues) {
        xml += `<Queue><Name>${escapeXml(name)}</Name>${withMetadata ? metadataElements(metadata) : ''}</Queue>`;
      }
      return Buffer.from(xml);
    },
    end: (nextMarker: string): Buffer =>
      Buffer.from(`${isOpen ? '</Queues>' : '<Queues />'}${element('NextMarker', nextMarker)}</EnumerationResults>`),
  };
}

export function putMessageXml(message: Message): string {
  return `<QueueMessagesList>${messageElement(identityElements(message) + receiptElements(message))}</QueueMessagesList>`;
}

export function dequeuedMessagesXml(messages: readonly Message[]): Promise<readonly Buffer[]> {
  return messagesXml(
    messages,
    (dequeued) => identityElements(dequeued) + receiptElements(dequeued) + contentElements(dequeued),
  );
}

export function peekedMessagesXml(messages: readonly Message[]): Promise<readonly Buffer[]> {
  return messagesXml(messages, (peeked) => identityElements(peeked) + contentElements(peeked));
}

/** Text that is made without a pause, about: a long message exceeds it alone. */
const SLICE_CHARACTERS = 128 << 10;

async function messagesXml(messages: readonly Message[], elements: (message: Message) => string): Promise<Buffer[]> {
  if (messages.length === 0) return [Buffer.from('<QueueMessagesList />')];
  const pieces: Buffer[] = [];
  let xml = '<QueueMessagesList>';
  for (const message of messages) {
    if (xml.length >= SLICE_CHARACTERS) {
      pieces.push(Buffer.from(xml));
      xml = '';
      await nextSlice();
    }
    xml += messageElement(elements(message));
  }
  return [...pieces, Buffer.from(`${xml}</QueueMessagesList>`)];
}

function messageElement(elements: string): string {
  return `<QueueMessage>${elements}</QueueMessage>`;
}

function identityElements({ id, inserted, expires }: Message): string {
  return (
    `<MessageId>${id}</MessageId><InsertionTime>${formatRfc1123(inserted)}</InsertionTime>` +
    `<ExpirationTime>${formatRfc1123(expires)}</ExpirationTime>`
  );
}

function receiptElements({ popReceipt, nextVisible }: Message): string {
  return `<PopReceipt>${popReceipt}</PopReceipt><TimeNextVisible>${formatRfc1123(nextVisible)}</TimeNextVisible>`;
}

function contentElements({ dequeueCount, text }: Message): string {
  return `<DequeueCount>${dequeueCount}</DequeueCount>${element('MessageText', text)}`;
}
