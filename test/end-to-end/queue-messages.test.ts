import { describe, expect, it } from 'vitest';
import { ask, bodyOf, newQueue, takeOne, textsIn } from '../support/queues.ts';
import { elementOf, expectError, onEveryEngine, serverFor } from '../support/test-server.ts';

const TTL_MAX = 2 ** 31 - 1;
const WEEK = 604_800;
/** As clients write a text into a document. */
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

describe('Put Message', () => {
  onEveryEngine((running) => {
    it('returns all properties of the new message', async () => {
      const queue = await newQueue(running);
      const put = await queue.sendMessage('text');
      expect(put._response.status).toBe(201);
      expect(put.messageId).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      expect(put.popReceipt).not.toBe('');
      expect(put.expiresOn.valueOf() - put.insertedOn.valueOf()).toBe(WEEK * 1_000);
      expect(put.nextVisibleOn).toEqual(put.insertedOn);
    });

    it('answers with this document, and older versions with none', async () => {
      const queue = await newQueue(running);
      const put = (version: string) =>
        ask(running, 'POST', `/${queue.name}/messages`, { body: bodyOf('t'), headers: { 'x-ms-version': version } });
      const now = await put('2016-05-31');
      expect([now.status, now.headers['content-type']]).toEqual([201, 'application/xml']);
      const date = '\\w{3}, \\d\\d \\w{3} \\d{4} \\d\\d:\\d\\d:\\d\\d GMT';
      expect(now.text).toMatch(
        new RegExp(
          '^\ufeff<\\?xml version="1.0" encoding="utf-8"\\?><QueueMessagesList><QueueMessage>' +
            `<MessageId>[0-9a-f-]{36}</MessageId><InsertionTime>${date}</InsertionTime>` +
            `<ExpirationTime>${date}</ExpirationTime><PopReceipt>[^<]+</PopReceipt>` +
            `<TimeNextVisible>${date}</TimeNextVisible></QueueMessage></QueueMessagesList>$`,
        ),
      );
      const before = await put('2015-12-11');
      expect([before.status, before.text]).toEqual([201, '']);
    });

    it('hides a message for as long as is asked', async () => {
      const queue = await newQueue(running);
      const put = await queue.sendMessage('later', { visibilityTimeout: 60 });
      expect(put.nextVisibleOn.valueOf() - put.insertedOn.valueOf()).toBe(60_000);
      expect(await textsIn(queue)).toEqual([]);
      await running.server.clock.advance(61);
      expect(await textsIn(queue)).toEqual(['later']);
    });

    it('keeps a message for its time to live', async () => {
      const queue = await newQueue(running);
      await queue.sendMessage('short', { messageTimeToLive: 10 });
      await queue.sendMessage('default');
      await queue.sendMessage('long', { messageTimeToLive: 2 * WEEK });
      const never = await queue.sendMessage('for ever', { messageTimeToLive: -1 });
      expect(never.expiresOn.toISOString()).toBe('9999-12-31T23:59:59.000Z');
      await running.server.clock.advance(11);
      expect(await textsIn(queue)).toEqual(['default', 'long', 'for ever']);
      await running.server.clock.advance(WEEK);
      expect(await textsIn(queue)).toEqual(['long', 'for ever']);
      await running.server.clock.advance(WEEK);
      expect(await textsIn(queue)).toEqual(['for ever']);
      expect((await queue.getProperties()).approximateMessagesCount).toBe(1);
    });

    it.each([
      ['visibilitytimeout=-1', 'OutOfRangeQueryParameterValue', 'visibilitytimeout', '0'],
      ['visibilitytimeout=604801', 'OutOfRangeQueryParameterValue', 'visibilitytimeout', '0'],
      ['visibilitytimeout=x', 'InvalidQueryParameterValue', 'visibilitytimeout', undefined],
      ['visibilitytimeout=1.5', 'InvalidQueryParameterValue', 'visibilitytimeout', undefined],
      ['visibilitytimeout=604800', 'InvalidQueryParameterValue', 'visibilitytimeout', undefined],
      ['visibilitytimeout=10&messagettl=10', 'InvalidQueryParameterValue', 'visibilitytimeout', undefined],
      ['messagettl=0', 'InvalidQueryParameterValue', 'messagettl', undefined],
      ['messagettl=-2', 'InvalidQueryParameterValue', 'messagettl', undefined],
      ['messagettl=2147483648', 'OutOfRangeQueryParameterValue', 'messagettl', '1', TTL_MAX],
      ['messagettl=9999999999999999999', 'OutOfRangeQueryParameterValue', 'messagettl', '1', TTL_MAX],
      ['messagettl=week', 'InvalidQueryParameterValue', 'messagettl', undefined],
    ])('refuses %s', async (query, code, name, min, max = WEEK) => {
      const queue = await newQueue(running);
      const answer = await ask(running, 'POST', `/${queue.name}/messages?${query}`, { body: bodyOf('t') });
      expectError(answer, 400, code, {
        QueryParameterName: name,
        ...(min !== undefined && { MinimumAllowed: min, MaximumAllowed: String(max) }),
      });
      expect(await textsIn(queue)).toEqual([]);
    });

    it('lived for a week at most before 2017-07-29', async () => {
      const queue = await newQueue(running);
      const put = (ttl: number) =>
        ask(running, 'POST', `/${queue.name}/messages?messagettl=${ttl}`, {
          body: bodyOf('t'),
          headers: { 'x-ms-version': '2017-04-17' },
        });
      expect((await put(WEEK)).status).toBe(201);
      for (const ttl of [WEEK + 1, -1, 0]) {
        expectError(await put(ttl), 400, 'OutOfRangeQueryParameterValue', { MaximumAllowed: String(WEEK) });
      }
    });

    it('is visible where the time to live is longer than the wait by a second', async () => {
      const queue = await newQueue(running);
      await queue.sendMessage('seen', { visibilityTimeout: 10, messageTimeToLive: 12 });
      await running.server.clock.advance(10.5);
      expect(await textsIn(queue)).toEqual(['seen']);
      await running.server.clock.advance(2);
      expect(await textsIn(queue)).toEqual([]);
    });
  });
});

describe('The text of a message', () => {
  const texts: readonly (readonly [string, string])[] = [
    ['plain', 'hello'],
    ['empty', ''],
    ['base64', Buffer.from('binary \0 \xff', 'latin1').toString('base64')],
    ['JSON', '{"a":[1,"two",{"three":"<&>\'"}]}'],
    ['XML', '<?xml version="1.0"?><a b="c">&amp;<![CDATA[<d/>]]></a>'],
    ['the end of CDATA', 'a]]>b'],
    ['emoji and scripts', '😀 é ß 中文 עברית \u{1f469}\u200d\u{1f4bb}'],
    ['tab and line feed', 'a\tb\nc'],
    ['carriage returns', 'a\r\nb\rc'],
    ['blanks at its ends', '  a  '],
    ['only blanks', '   '],
    ['characters above ASCII control', '\u007f\u0080\u0085\u009f\u2028\ufffd'],
    ['the end of its own element', '</MessageText></QueueMessage>'],
    ['percent and plus', '%20+%2B&amp;'],
  ];

  onEveryEngine((running) => {
    it.each(texts)('is returned as it was sent: %s', async (_, text) => {
      const queue = await newQueue(running);
      const body = bodyOf(escaped(text).replaceAll('\r', '&#13;'));
      expect((await ask(running, 'POST', `/${queue.name}/messages`, { body })).status).toBe(201);
      const peeked = await ask(running, 'GET', `/${queue.name}/messages?peekonly=true`);
      const back = /<MessageText(?: \/>|>([^<]*)<\/MessageText>)/.exec(peeked.text)![1] ?? '';
      const entities: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'", '#xD': '\r' };
      expect(back.replace(/&([^;]+);/g, (entity, name: string) => entities[name] ?? entity)).toBe(text);
    });

    // The client itself drops line ends, and blanks at the ends of a text.
    it.each(texts.filter(([, text]) => text.trim() === text && !/[\r\n]/.test(text)))(
      "comes back as it went through Microsoft's client: %s",
      async (_, text) => {
        const queue = await newQueue(running);
        await queue.sendMessage(text);
        expect(await textsIn(queue)).toEqual([text]);
        const taken = await takeOne(queue);
        expect(taken.messageText).toBe(text);
        const again = `${text} again`;
        await queue.updateMessage(taken.messageId, taken.popReceipt, again, 0);
        expect((await takeOne(queue)).messageText).toBe(again);
      },
    );

    it('is read from CDATA, from numbers of characters, and from UTF-16', async () => {
      const queue = await newQueue(running);
      const put = async (body: string | Uint8Array) => {
        expect((await ask(running, 'POST', `/${queue.name}/messages`, { body })).status).toBe(201);
      };
      await put(bodyOf('<![CDATA[<a>&amp;]]>'));
      await put(bodyOf('&#x1F600;&#233;'));
      await put(Buffer.from(`\ufeff${bodyOf('é')}`, 'utf16le'));
      expect(await textsIn(queue)).toEqual(['<a>&amp;', '😀é', 'é']);
    });

    it('has up to 64 KiB, counted in UTF-8', async () => {
      const queue = await newQueue(running);
      for (const [most, more] of [
        ['a'.repeat(65_536), 'a'.repeat(65_537)],
        ['é'.repeat(32_768), `${'é'.repeat(32_768)}a`],
        ['<'.repeat(65_536), '<'.repeat(65_537)],
      ] as const) {
        const refused = await ask(running, 'POST', `/${queue.name}/messages`, { body: bodyOf(escaped(more)) });
        expectError(refused, 413, 'RequestBodyTooLarge', { MaxLimit: '65536' });
        const { messageId, popReceipt } = await queue.sendMessage(most);
        expect(await textsIn(queue)).toEqual([most]);
        const path = `/${queue.name}/messages/${messageId}?popreceipt=${popReceipt}&visibilitytimeout=0`;
        expectError(await ask(running, 'PUT', path, { body: bodyOf(escaped(more)) }), 413, 'RequestBodyTooLarge');
        await queue.updateMessage(messageId, popReceipt, `b${most.slice(1)}`, 0);
        expect(await textsIn(queue)).toEqual([`b${most.slice(1)}`]);
        await queue.clearMessages();
      }
    });

    it('is refused by its Content-Length before it is sent', async () => {
      const queue = await newQueue(running);
      const body = bodyOf('a'.repeat(500_000));
      const answer = await ask(running, 'POST', `/${queue.name}/messages`, { body });
      expectError(answer, 413, 'RequestBodyTooLarge', { MaxLimit: '65536' });
    });

    it.each([
      ['a control character', bodyOf('\u0001')],
      ['its number', bodyOf('&#x1;')],
      ['U+FFFE', bodyOf('\ufffe')],
      ['a surrogate alone', Buffer.from(bodyOf('\xed\xa0\x80'), 'latin1')],
      ['no XML', 'text'],
      ['nothing', ''],
      ['another document', '<Other />'],
    ])('is refused as no document: %s', async (_, body) => {
      const queue = await newQueue(running);
      const answer = await ask(running, 'POST', `/${queue.name}/messages`, { body });
      expectError(answer, 400, 'InvalidXmlDocument');
      expect(elementOf(answer.text, 'LineNumber')).toBeDefined();
      expect(await textsIn(queue)).toEqual([]);
    });
  });
});

describe('Get Messages', () => {
  onEveryEngine((running) => {
    it('hands out what is first, and hides it for as long as is asked', async () => {
      const queue = await newQueue(running);
      for (const text of ['a', 'b', 'c']) await queue.sendMessage(text);
      const { receivedMessageItems: got } = await queue.receiveMessages({ numberOfMessages: 2, visibilityTimeout: 60 });
      expect(got.map(({ messageText, dequeueCount }) => [messageText, dequeueCount])).toEqual([
        ['a', 1],
        ['b', 1],
      ]);
      expect(await textsIn(queue)).toEqual(['c']);
      await running.server.clock.advance(61);
      expect(await textsIn(queue)).toEqual(['c', 'a', 'b']);
      const { receivedMessageItems: again } = await queue.receiveMessages({ numberOfMessages: 32 });
      expect(again.map(({ messageText, dequeueCount }) => [messageText, dequeueCount])).toEqual([
        ['c', 1],
        ['a', 2],
        ['b', 2],
      ]);
    });

    it('dequeues one message for 30 seconds by default', async () => {
      const queue = await newQueue(running);
      await queue.sendMessage('a');
      await queue.sendMessage('b');
      const answer = await ask(running, 'GET', `/${queue.name}/messages`);
      expect(answer.headers['cache-control']).toBe('no-cache');
      expect(answer.text.match(/<QueueMessage>/g)).toHaveLength(1);
      expect(answer.text).toMatch(
        /<PopReceipt>[^<]+<\/PopReceipt><TimeNextVisible>[^<]+<\/TimeNextVisible><DequeueCount>1<\/DequeueCount><MessageText>a<\/MessageText><\/QueueMessage>/,
      );
      const [, next, date] = [0, elementOf(answer.text, 'TimeNextVisible')!, answer.headers.date!];
      const seconds = (Date.parse(next) - Date.parse(date)) / 1_000;
      expect(seconds).toBeGreaterThanOrEqual(29);
      expect(seconds).toBeLessThanOrEqual(30);
    });

    it('dequeues nothing at the secondary address', async () => {
      const queue = await newQueue(running);
      await queue.sendMessage('stays');
      const path = `-secondary/${queue.name}/messages`;
      expectError(await running.request('GET', path, { of: 'queue' }), 403, 'InsufficientAccountPermissions');
      expect((await running.request('GET', `${path}?peekonly=true`, { of: 'queue' })).text).toContain('stays');
    });

    it('answers an empty list where nothing is to be seen', async () => {
      const queue = await newQueue(running);
      expect((await ask(running, 'GET', `/${queue.name}/messages`)).text).toContain('<QueueMessagesList />');
      expect((await queue.receiveMessages()).receivedMessageItems).toEqual([]);
    });

    it('hides a message past its end, if that is asked', async () => {
      const queue = await newQueue(running);
      await queue.sendMessage('short', { messageTimeToLive: 30 });
      await takeOne(queue, 60);
      await running.server.clock.advance(61);
      expect(await textsIn(queue)).toEqual([]);
    });

    it('delivers each message to one of many concurrent consumers', async () => {
      const queue = await newQueue(running);
      for (let i = 0; i < 48; i++) await queue.sendMessage(`m${i}`);
      const answers = await Promise.all(
        Array.from({ length: 24 }, () => queue.receiveMessages({ numberOfMessages: 3, visibilityTimeout: 600 })),
      );
      const ids = answers.flatMap(({ receivedMessageItems }) => receivedMessageItems.map(({ messageId }) => messageId));
      expect(ids).toHaveLength(48);
      expect(new Set(ids).size).toBe(48);
    });

    it.each([
      ['numofmessages=0', 'OutOfRangeQueryParameterValue', 'numofmessages', '1', '32'],
      ['numofmessages=33', 'OutOfRangeQueryParameterValue', 'numofmessages', '1', '32'],
      ['numofmessages=-1', 'OutOfRangeQueryParameterValue', 'numofmessages', '1', '32'],
      ['numofmessages=all', 'InvalidQueryParameterValue', 'numofmessages', undefined, undefined],
      ['visibilitytimeout=0', 'OutOfRangeQueryParameterValue', 'visibilitytimeout', '1', String(WEEK)],
      ['visibilitytimeout=604801', 'OutOfRangeQueryParameterValue', 'visibilitytimeout', '1', String(WEEK)],
      ['visibilitytimeout=long', 'InvalidQueryParameterValue', 'visibilitytimeout', undefined, undefined],
      ['peekonly=yes', 'InvalidQueryParameterValue', 'peekonly', undefined, undefined],
    ])('refuses %s, and takes nothing', async (query, code, name, min, max) => {
      const queue = await newQueue(running);
      await queue.sendMessage('there');
      const answer = await ask(running, 'GET', `/${queue.name}/messages?${query}`);
      expectError(answer, 400, code, {
        QueryParameterName: name,
        ...(min !== undefined && { MinimumAllowed: min, MaximumAllowed: max! }),
      });
      expect(await textsIn(queue)).toEqual(['there']);
    });

    it('hid for two hours at most before 2011-08-18', async () => {
      const queue = await newQueue(running);
      const get = (seconds: number) =>
        ask(running, 'GET', `/${queue.name}/messages?visibilitytimeout=${seconds}`, {
          headers: { 'x-ms-version': '2009-09-19' },
        });
      expect((await get(7_200)).status).toBe(200);
      expectError(await get(7_201), 400, 'OutOfRangeQueryParameterValue', { MaximumAllowed: '7200' });
    });
  });
});

describe('Peek Messages', () => {
  onEveryEngine((running) => {
    it('changes nothing, and returns neither receipt nor time', async () => {
      const queue = await newQueue(running);
      for (const text of ['a', 'b', 'c']) await queue.sendMessage(text);
      for (const query of ['peekonly=true', 'peekonly=True&numofmessages=1']) {
        const answer = await ask(running, 'GET', `/${queue.name}/messages?${query}`);
        expect(answer.text).toMatch(
          /<\/ExpirationTime><DequeueCount>0<\/DequeueCount><MessageText>a<\/MessageText><\/QueueMessage><\/QueueMessagesList>$/,
        );
      }
      expect(await textsIn(queue)).toEqual(['a', 'b', 'c']);
      expect((await queue.peekMessages({ numberOfMessages: 2 })).peekedMessageItems).toHaveLength(2);
      const first = await queue.receiveMessages();
      expect(first.receivedMessageItems[0]).toMatchObject({ messageText: 'a', dequeueCount: 1 });
    });

    it.each(['0', '33'])('refuses numofmessages=%s', async (count) => {
      const queue = await newQueue(running);
      const answer = await ask(running, 'GET', `/${queue.name}/messages?peekonly=true&numofmessages=${count}`);
      expectError(answer, 400, 'OutOfRangeQueryParameterValue', { MinimumAllowed: '1', MaximumAllowed: '32' });
    });
  });
});

describe('Clear Messages', () => {
  onEveryEngine((running) => {
    it('is refused with a pop receipt, which means a single message', async () => {
      const queue = await newQueue(running);
      await queue.sendMessage('stays');
      const answer = await running.request('DELETE', `/${queue.name}/messages/?popreceipt=AAAA`, { of: 'queue' });
      expectError(answer, 400, 'UnsupportedQueryParameter', { QueryParameterName: 'popreceipt' });
      expect((await queue.peekMessages()).peekedMessageItems).toHaveLength(1);
    });

    it('removes all, invisible ones too, and later messages stay', async () => {
      const queue = await newQueue(running);
      for (const text of ['a', 'b', 'c']) await queue.sendMessage(text);
      const { receivedMessageItems } = await queue.receiveMessages({ visibilityTimeout: 10 });
      const [{ messageId, popReceipt }] = receivedMessageItems as [(typeof receivedMessageItems)[0]];
      expect((await queue.clearMessages())._response.status).toBe(204);
      await queue.sendMessage('new');
      await running.server.clock.advance(11);
      expect(await textsIn(queue)).toEqual(['new']);
      const gone = await ask(running, 'DELETE', `/${queue.name}/messages/${messageId}?popreceipt=${popReceipt}`);
      expectError(gone, 404, 'MessageNotFound');
      await queue.clearMessages();
      await queue.clearMessages();
      expect(await textsIn(queue)).toEqual([]);
    });
  });
});

describe('A verb that no message operation has', () => {
  const running = serverFor('memory');

  it.each([
    ['PUT', '/messages'],
    ['HEAD', '/messages'],
    ['POST', ''],
    ['POST', '/messages/id'],
    ['GET', '/messages/id'],
  ])('is refused: %s at %s', async (method, path) => {
    const queue = await newQueue(running);
    const answer = await ask(running, method, `/${queue.name}${path}`, { headers: { 'Content-Length': 0 } });
    expect([answer.status, answer.headers['x-ms-error-code']]).toEqual([405, 'UnsupportedHttpVerb']);
  });
});
