import { describe, expect, it } from 'vitest';
import type { Message } from '../../services/queue/message-rows.ts';
import {
  createQueueListWriter,
  dequeuedMessagesXml,
  peekedMessagesXml,
  putMessageXml,
  queueListStart,
} from './list-xml.ts';

const message = (text: string): Message => ({
  ...{ id: 'id', inserted: 0n, expires: 0n, popReceipt: 'receipt', nextVisible: 0n, dequeueCount: 1 },
  text,
});
const textOf = (pieces: readonly Buffer[]) => Buffer.concat(pieces).toString();

describe('A list of messages', () => {
  it('is one document, in pieces of few long messages, between which others have their turn', async () => {
    const messages = Array.from({ length: 32 }, () => message('&'.repeat(65_536)));
    const escaped = '&amp;'.repeat(65_536);
    for (const make of [dequeuedMessagesXml, peekedMessagesXml]) {
      let turns = 0;
      let immediate = setImmediate(function next() {
        turns++;
        immediate = setImmediate(next);
      });
      const pieces = await make(messages).finally(() => clearImmediate(immediate));
      expect(turns).toBeGreaterThanOrEqual(messages.length - 1);
      for (const piece of pieces) expect(piece.length).toBeLessThan(2 * escaped.length);
      const texts = [...textOf(pieces).matchAll(/<QueueMessage>.*?<MessageText>(.*?)<\/MessageText><\/QueueMessage>/g)];
      expect(texts.map(([, text]) => text === escaped)).toEqual(messages.map(() => true));
      expect(textOf(pieces)).toMatch(/^<QueueMessagesList><QueueMessage><MessageId>.*<\/QueueMessagesList>$/);
    }
  });

  it('is one piece of short ones, and an empty element of none', async () => {
    expect(await dequeuedMessagesXml([message('a'), message('b')])).toHaveLength(1);
    expect(textOf(await peekedMessagesXml([]))).toBe('<QueueMessagesList />');
    expect(putMessageXml(message('a'))).toMatch(
      /^<QueueMessagesList><QueueMessage>.*<\/QueueMessage><\/QueueMessagesList>$/,
    );
  });
});

describe('A list of queues', () => {
  it('opens its element with the first of them', () => {
    const start = '<EnumerationResults ServiceEndpoint="http://x/">';
    const end = '<NextMarker /></EnumerationResults>';
    const none = [queueListStart('http://x/', {}), createQueueListWriter(false).end('')];
    expect(textOf(none)).toBe(`${start}<Queues />${end}`);
    const list = createQueueListWriter(true);
    const some = [list.queues([{ name: 'a', metadata: {} }]), list.queues([{ name: 'b', metadata: { c: '<' } }])];
    expect(textOf([...some, list.end('')])).toBe(
      '<Queues><Queue><Name>a</Name><Metadata /></Queue>' +
        `<Queue><Name>b</Name><Metadata><c>&lt;</c></Metadata></Queue></Queues>${end}`,
    );
  });
});
