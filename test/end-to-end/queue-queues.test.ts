import { describe, expect, it } from 'vitest';
import { ask, newName, newQueue, textsIn } from '../support/queues.ts';
import { expectError, expectRefusal, onEveryEngine } from '../support/test-server.ts';

describe('Create Queue', () => {
  onEveryEngine((running) => {
    it('makes an empty queue with its metadata', async () => {
      const queue = running.queues.getQueueClient(newName());
      const made = await queue.create({ metadata: { kind: 'orders', Mixed: 'Case' } });
      expect(made._response.status).toBe(201);
      const { metadata, approximateMessagesCount } = await queue.getProperties();
      expect(metadata).toEqual({ kind: 'orders', mixed: 'Case' });
      expect(approximateMessagesCount).toBe(0);
    });

    it('answers 204 if the same queue exists, and does not change it', async () => {
      const queue = await newQueue(running, { a: '1', b: '2' });
      await queue.sendMessage('kept');
      expect((await queue.create({ metadata: { b: '2', a: '1' } }))._response.status).toBe(204);
      expect((await queue.create({ metadata: { B: '2', A: '1' } }))._response.status).toBe(204);
      expect(await textsIn(queue)).toEqual(['kept']);
    });

    it('refuses one of other metadata', async () => {
      const queue = await newQueue(running, { a: '1' });
      for (const metadata of [{}, { a: '2' }, { a: '1', b: '' }, { b: '1' }]) {
        await expectRefusal(queue.create({ metadata }), 409, 'QueueAlreadyExists');
      }
      expect((await queue.createIfNotExists({ metadata: { other: 'x' } })).succeeded).toBe(false);
      expect((await queue.getProperties()).metadata).toEqual({ a: '1' });
    });

    it('is done once where several ask at once', async () => {
      const queue = running.queues.getQueueClient(newName());
      const made = await Promise.all(Array.from({ length: 8 }, () => queue.create()));
      expect(made.map(({ _response }) => _response.status).sort()).toEqual([201, ...Array(7).fill(204)]);
      const other = running.queues.getQueueClient(newName());
      const asked = await Promise.allSettled(
        Array.from({ length: 8 }, (_, i) => other.create({ metadata: { by: String(i) } })),
      );
      expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    });

    it.each([
      ['ab', 'OutOfRangeInput'],
      ['a'.repeat(64), 'OutOfRangeInput'],
      ['Upper', 'InvalidResourceName'],
      ['two--dashes', 'InvalidResourceName'],
      ['-first', 'InvalidResourceName'],
      ['last-', 'InvalidResourceName'],
      ['under_score', 'InvalidResourceName'],
      ['%E5%95%8A%E9%BD%84%E4%B8%82', 'InvalidResourceName'],
      ['$logs', 'InvalidResourceName'],
      ['with/slash', 'InvalidResourceName'],
      ['messages/messages/id/more', 'InvalidResourceName'],
    ])('takes no name such as %s', async (name, code) => {
      expectError(await ask(running, 'PUT', `/${name}`), 400, code);
      expectError(await ask(running, 'GET', `/${name}?comp=metadata`), 400, code);
      expectError(await ask(running, 'DELETE', `/${name}`), 400, code);
    });

    it.each(['abc', 'a'.repeat(63), '0-1-2', 'messages'])('takes the name %s', async (name) => {
      expect((await ask(running, 'PUT', `/${name}`)).status).toBe(201);
      expect((await ask(running, 'DELETE', `/${name}/`)).status).toBe(204);
    });

    it('refuses metadata that cannot be stored', async () => {
      const make = (headers: Record<string, string>) => ask(running, 'PUT', `/${newName()}`, { headers });
      expectError(await make({ 'x-ms-meta-': 'nameless' }), 400, 'EmptyMetadataKey');
      expectError(await make({ 'x-ms-meta-a-b': 'no C# name' }), 400, 'InvalidMetadata');
      expectError(await make({ 'x-ms-meta-a': 'x'.repeat(8_192) }), 400, 'MetadataTooLarge');
    });
  });
});

describe('Delete Queue', () => {
  onEveryEngine((running) => {
    it('removes the queue with its messages', async () => {
      const queue = await newQueue(running, { a: '1' });
      const sent = await queue.sendMessage('gone');
      const { _response } = await queue.delete();
      expect(_response.status).toBe(204);
      await expectRefusal(queue.getProperties(), 404, 'QueueNotFound');
      await expectRefusal(queue.getAccessPolicy(), 404, 'QueueNotFound');
      await expectRefusal(queue.setMetadata({}), 404, 'QueueNotFound');
      await expectRefusal(queue.setAccessPolicy([]), 404, 'QueueNotFound');
      await expectRefusal(queue.delete(), 404, 'QueueNotFound');
      await expectRefusal(queue.sendMessage('text'), 404, 'QueueNotFound');
      await expectRefusal(queue.receiveMessages(), 404, 'QueueNotFound');
      await expectRefusal(queue.peekMessages(), 404, 'QueueNotFound');
      await expectRefusal(queue.clearMessages(), 404, 'QueueNotFound');
      await expectRefusal(queue.deleteMessage(sent.messageId, sent.popReceipt), 404, 'QueueNotFound');
      await expectRefusal(queue.updateMessage(sent.messageId, sent.popReceipt, 'new'), 404, 'QueueNotFound');
      expect(await queue.exists()).toBe(false);
      expect((await queue.deleteIfExists()).succeeded).toBe(false);
    });

    it('leaves nothing to a queue of the same name', async () => {
      const queue = await newQueue(running, { a: '1' });
      const sent = await queue.sendMessage('of the first');
      await queue.delete();
      expect((await queue.create({ metadata: { b: '2' } }))._response.status).toBe(201);
      expect(await textsIn(queue)).toEqual([]);
      const { metadata, approximateMessagesCount } = await queue.getProperties();
      expect([metadata, approximateMessagesCount]).toEqual([{ b: '2' }, 0]);
      await expectRefusal(queue.deleteMessage(sent.messageId, sent.popReceipt), 404, 'MessageNotFound');
    });
  });
});

describe('Get Queue Metadata and Set Queue Metadata', () => {
  onEveryEngine((running) => {
    it('replaces all of it', async () => {
      const queue = await newQueue(running, { a: '1', b: '2' });
      expect((await queue.setMetadata({ c: '3' }))._response.status).toBe(204);
      expect((await queue.getProperties()).metadata).toEqual({ c: '3' });
      await queue.setMetadata();
      expect((await queue.getProperties()).metadata).toEqual({});
    });

    it('keeps the case of the names', async () => {
      const queue = await newQueue(running);
      await ask(running, 'PUT', `/${queue.name}?comp=metadata`, { headers: { 'x-ms-meta-MixedCase': 'Value' } });
      const { rawHeaders } = await ask(running, 'GET', `/${queue.name}?comp=metadata`);
      expect(rawHeaders).toContain('x-ms-meta-MixedCase');
    });

    it('counts the messages, visible or not', async () => {
      const queue = await newQueue(running);
      const count = async () => (await queue.getProperties()).approximateMessagesCount;
      for (let i = 0; i < 5; i++) await queue.sendMessage(`m${i}`, { visibilityTimeout: i === 4 ? 100 : 0 });
      expect(await count()).toBe(5);
      const { receivedMessageItems } = await queue.receiveMessages({ numberOfMessages: 2 });
      expect(await count()).toBe(5);
      for (const { messageId, popReceipt } of receivedMessageItems) await queue.deleteMessage(messageId, popReceipt);
      expect(await count()).toBe(3);
      await queue.clearMessages();
      expect(await count()).toBe(0);
    });

    it('counts no message that has expired, met or not, hidden or not', async () => {
      const queue = await newQueue(running);
      const count = async () => (await queue.getProperties()).approximateMessagesCount;
      await queue.sendMessage('stays at the head', { messageTimeToLive: -1 });
      for (let i = 0; i < 9; i++) await queue.sendMessage('short', { messageTimeToLive: 60 + i });
      for (let i = 0; i < 5; i++) await queue.sendMessage('longer', { messageTimeToLive: 10_000 });
      expect(
        (await queue.receiveMessages({ numberOfMessages: 3, visibilityTimeout: 50_000 })).receivedMessageItems,
      ).toHaveLength(3);
      expect(await count()).toBe(15);
      await running.server.clock.advance(120);
      expect(await count()).toBe(6);
      await running.server.clock.advance(10_000);
      expect(await count()).toBe(1);
      await queue.sendMessage('new');
      expect(await count()).toBe(2);
    });

    it('is answered to HEAD as to GET, and must not be cached', async () => {
      const queue = await newQueue(running, { a: '1' });
      for (const method of ['GET', 'HEAD']) {
        const answer = await ask(running, method, `/${queue.name}?comp=metadata`);
        expect([answer.status, answer.text]).toEqual([200, '']);
        expect(answer.headers).toMatchObject({
          'x-ms-meta-a': '1',
          'x-ms-approximate-messages-count': '0',
          'cache-control': 'no-cache',
          server: 'Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0',
        });
      }
    });

    it('is that of the last writer, and one writer of policies loses nothing by it', async () => {
      const queue = await newQueue(running);
      const policies = [{ id: 'kept', accessPolicy: { permissions: 'r' } }];
      await Promise.all([
        queue.setAccessPolicy(policies),
        ...Array.from({ length: 12 }, (_, i) => queue.setMetadata({ by: String(i), only: `mine-${i}` })),
      ]);
      const { metadata } = await queue.getProperties();
      expect(metadata!.only).toBe(`mine-${metadata!.by}`);
      await queue.setMetadata({ by: 'last' });
      expect((await queue.getProperties()).metadata).toEqual({ by: 'last' });
      expect((await queue.getAccessPolicy()).signedIdentifiers.map(({ id }) => id)).toEqual(['kept']);
      await queue.setAccessPolicy([]);
      expect((await queue.getProperties()).metadata).toEqual({ by: 'last' });
    });
  });
});
