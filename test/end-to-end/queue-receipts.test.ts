/** Update Message and Delete Message: what a pop receipt permits, and for how long. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ask, bodyOf, newQueue, takeOne, textsIn } from '../support/queues.ts';
import { expectError, expectRefusal, onEveryEngine } from '../support/test-server.ts';

describe('Update Message', () => {
  onEveryEngine((running) => {
    it('changes text and visibility, and gives a new receipt', async () => {
      const queue = await newQueue(running);
      await queue.sendMessage('old');
      const taken = await takeOne(queue);
      const updated = await queue.updateMessage(taken.messageId, taken.popReceipt, 'new', 60);
      expect(updated._response.status).toBe(204);
      expect(updated.popReceipt).not.toBe(taken.popReceipt);
      expect(updated.nextVisibleOn!.valueOf() - taken.nextVisibleOn.valueOf()).toBeGreaterThan(25_000);
      expect(await textsIn(queue)).toEqual([]);
      await running.server.clock.advance(61);
      const again = await takeOne(queue);
      expect(again).toMatchObject({ messageId: taken.messageId, messageText: 'new', dequeueCount: 2 });
      expect([again.insertedOn, again.expiresOn]).toEqual([taken.insertedOn, taken.expiresOn]);
    });

    it('keeps the text if none is sent, and makes the message visible at once with 0', async () => {
      const queue = await newQueue(running);
      await queue.sendMessage('kept');
      const taken = await takeOne(queue);
      const { popReceipt } = await queue.updateMessage(taken.messageId, taken.popReceipt);
      expect(await textsIn(queue)).toEqual(['kept']);
      const { _response } = await queue.updateMessage(taken.messageId, popReceipt!, '', 0);
      expect(_response.status).toBe(204);
      expect(await textsIn(queue)).toEqual(['']);
      expect((await takeOne(queue)).dequeueCount).toBe(2);
    });

    it('returns receipt and time in headers', async () => {
      const queue = await newQueue(running);
      const { messageId, popReceipt } = await queue.sendMessage('text');
      const path = `/${queue.name}/messages/${messageId}?popreceipt=${encodeURIComponent(popReceipt)}&visibilitytimeout=5`;
      const answer = await ask(running, 'PUT', path);
      expect([answer.status, answer.text]).toEqual([204, '']);
      expect(answer.headers['x-ms-popreceipt']).toBeTruthy();
      expect(answer.headers['x-ms-time-next-visible']).toMatch(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/);
    });

    it('does not hide a message past its end', async () => {
      const queue = await newQueue(running);
      await queue.sendMessage('short', { messageTimeToLive: 100 });
      const { messageId, popReceipt } = await takeOne(queue);
      await expectRefusal(queue.updateMessage(messageId, popReceipt, 'new', 200), 400, 'InvalidQueryParameterValue');
      await queue.updateMessage(messageId, popReceipt, 'new', 50);
      await running.server.clock.advance(51);
      expect(await textsIn(queue)).toEqual(['new']);
    });

    it.each(['-1', '604801'])('refuses visibilitytimeout=%s', async (seconds) => {
      const queue = await newQueue(running);
      const { messageId, popReceipt } = await queue.sendMessage('text');
      const path = `/${queue.name}/messages/${messageId}?popreceipt=${popReceipt}&visibilitytimeout=${seconds}`;
      expectError(await ask(running, 'PUT', path, { body: bodyOf('new') }), 400, 'OutOfRangeQueryParameterValue', {
        QueryParameterName: 'visibilitytimeout',
        MinimumAllowed: '0',
        MaximumAllowed: '604800',
      });
    });

    it('needs a time and a receipt', async () => {
      const queue = await newQueue(running);
      const { messageId, popReceipt } = await queue.sendMessage('text');
      const path = `/${queue.name}/messages/${messageId}`;
      expectError(await ask(running, 'PUT', `${path}?popreceipt=${popReceipt}`), 400, 'MissingRequiredQueryParameter', {
        QueryParameterName: 'visibilitytimeout',
      });
      expectError(await ask(running, 'PUT', `${path}?visibilitytimeout=0`), 400, 'MissingRequiredQueryParameter', {
        QueryParameterName: 'popreceipt',
      });
      expectError(await ask(running, 'DELETE', path), 400, 'MissingRequiredQueryParameter', {
        QueryParameterName: 'popreceipt',
      });
      expect(await textsIn(queue)).toEqual(['text']);
    });

    it('succeeds for one of the clients with the same receipt', async () => {
      const queue = await newQueue(running);
      await queue.sendMessage('text');
      const { messageId, popReceipt } = await takeOne(queue);
      const asked = await Promise.allSettled(
        Array.from({ length: 8 }, (_, i) => queue.updateMessage(messageId, popReceipt, `by ${i}`, 0)),
      );
      const winners = asked.flatMap(({ status }, i) => (status === 'fulfilled' ? [i] : []));
      expect(winners).toHaveLength(1);
      for (const one of asked) if (one.status === 'rejected') expect(one.reason.statusCode).toBe(404);
      expect(await textsIn(queue)).toEqual([`by ${winners[0]}`]);
    });
  });
});

describe('A pop receipt', () => {
  onEveryEngine((running) => {
    it('of Put Message is valid until the message is dequeued', async () => {
      const queue = await newQueue(running);
      const put = await queue.sendMessage('text');
      const { popReceipt } = await queue.updateMessage(put.messageId, put.popReceipt, 'changed', 0);
      await expectRefusal(queue.deleteMessage(put.messageId, put.popReceipt), 404, 'MessageNotFound');
      await takeOne(queue);
      await expectRefusal(queue.deleteMessage(put.messageId, popReceipt!), 404, 'MessageNotFound');
    });

    it('is valid only as the newest one', async () => {
      const queue = await newQueue(running);
      await queue.sendMessage('text');
      const first = await takeOne(queue, 1);
      await running.server.clock.advance(2);
      const second = await takeOne(queue);
      expect(second.messageId).toBe(first.messageId);
      await expectRefusal(queue.deleteMessage(first.messageId, first.popReceipt), 404, 'MessageNotFound');
      await expectRefusal(queue.updateMessage(first.messageId, first.popReceipt, 'x', 0), 404, 'MessageNotFound');
      const third = await queue.updateMessage(second.messageId, second.popReceipt, undefined, 10);
      await expectRefusal(queue.deleteMessage(second.messageId, second.popReceipt), 404, 'MessageNotFound');
      expect((await queue.deleteMessage(second.messageId, third.popReceipt!))._response.status).toBe(204);
      await expectRefusal(queue.deleteMessage(second.messageId, third.popReceipt!), 404, 'MessageNotFound');
    });

    it('stays valid when the message is visible again, until it is dequeued', async () => {
      const queue = await newQueue(running);
      await queue.sendMessage('text');
      const { messageId, popReceipt } = await takeOne(queue, 1);
      await running.server.clock.advance(5);
      expect(await textsIn(queue)).toEqual(['text']);
      await queue.deleteMessage(messageId, popReceipt);
      expect(await textsIn(queue)).toEqual([]);
    });

    it('opens nothing when the message has expired', async () => {
      const queue = await newQueue(running);
      await queue.sendMessage('text', { messageTimeToLive: 10 });
      const { messageId, popReceipt } = await takeOne(queue, 100);
      await running.server.clock.advance(11);
      await expectRefusal(queue.updateMessage(messageId, popReceipt, 'x', 0), 404, 'MessageNotFound');
      await expectRefusal(queue.deleteMessage(messageId, popReceipt), 404, 'MessageNotFound');
    });

    it('is that of one message of one queue', async () => {
      const [queue, other] = [await newQueue(running), await newQueue(running)];
      const [one, two] = [await queue.sendMessage('one'), await queue.sendMessage('two')];
      await expectRefusal(queue.deleteMessage(one.messageId, two.popReceipt), 404, 'MessageNotFound');
      await expectRefusal(other.deleteMessage(one.messageId, one.popReceipt), 404, 'MessageNotFound');
      await expectRefusal(queue.deleteMessage(randomUUID(), one.popReceipt), 404, 'MessageNotFound');
      await expectRefusal(queue.deleteMessage('no-guid', one.popReceipt), 404, 'MessageNotFound');
      expect(await textsIn(queue)).toEqual(['one', 'two']);
    });

    it.each(['', 'x', 'AgAAAAMAAAAAAAAA3XFeemNE2AE=', 'é', '%00', `${'A'.repeat(2_000)}`])(
      'is refused where it is none: %s',
      async (text) => {
        const queue = await newQueue(running);
        const { messageId } = await queue.sendMessage('text');
        const path = `/${queue.name}/messages/${messageId}?popreceipt=${encodeURIComponent(text)}`;
        expectError(await ask(running, 'DELETE', path), 400, 'InvalidQueryParameterValue', {
          QueryParameterName: 'popreceipt',
        });
        expectError(await ask(running, 'PUT', `${path}&visibilitytimeout=0`), 400, 'InvalidQueryParameterValue');
      },
    );
  });
});
