/** The XML of the Queue service that goes out. */
import { rfc1123 } from '../../base/time.ts';
import { escapeXml } from '../../base/xml.ts';
import type { ListedQueue } from '../../services/queue/listing.ts';
import type { Message } from '../../services/queue/message-rows.ts';
import { type Echoed, echo, element, metadataElements } from '../list-elements.ts';

export function queueList(
  endpoint: string,
  asked: Echoed,
  queues: readonly ListedQueue[],
  nextMarker: string,
  withMetadata: boolean,
): string {
  let xml = '';
  for (const { name, metadata } of queues) {
    xml += `<Queue><Name>${escapeXml(name)}</Name>${withMetadata ? metadataElements(metadata) : ''}</Queue>`;
  }
  return (
    `<EnumerationResults ServiceEndpoint="${escapeXml(endpoint)}">${echo(asked)}` +
    `${xml === '' ? '<Queues />' : `<Queues>${xml}</Queues>`}${element('NextMarker', nextMarker)}</EnumerationResults>`
  );
}

/** What Put Message tells of the message that was put. */
export function putList(message: Message): string {
  return messageList([message], (put) => identity(put) + receipt(put));
}

export function takenList(messages: readonly Message[]): string {
  return messageList(messages, (taken) => identity(taken) + receipt(taken) + content(taken));
}

export function peekedList(messages: readonly Message[]): string {
  return messageList(messages, (peeked) => identity(peeked) + content(peeked));
}

function messageList(messages: readonly Message[], elements: (message: Message) => string): string {
  let xml = '';
  for (const message of messages) xml += `<QueueMessage>${elements(message)}</QueueMessage>`;
  return xml === '' ? '<QueueMessagesList />' : `<QueueMessagesList>${xml}</QueueMessagesList>`;
}

function identity({ id, inserted, expires }: Message): string {
  return (
    `<MessageId>${id}</MessageId><InsertionTime>${rfc1123(inserted)}</InsertionTime>` +
    `<ExpirationTime>${rfc1123(expires)}</ExpirationTime>`
  );
}

function receipt({ popReceipt, nextVisible }: Message): string {
  return `<PopReceipt>${popReceipt}</PopReceipt><TimeNextVisible>${rfc1123(nextVisible)}</TimeNextVisible>`;
}

function content({ dequeueCount, text }: Message): string {
  return `<DequeueCount>${dequeueCount}</DequeueCount>${element('MessageText', text)}`;
}
