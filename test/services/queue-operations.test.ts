import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeKey, keysUnder } from '../../src/partition/keys.ts';
import type { Transaction } from '../../src/partition/partition.ts';
import { emptyAccount } from '../../src/services/maintenance/reset.ts';
import { queueAccess } from '../../src/services/queue/access.ts';
import { type ListedQueue, listQueues } from '../../src/services/queue/listing.ts';
import {
  clearMessages,
  deleteMessage,
  getMessages,
  peekMessages,
  putMessage,
  updateMessage,
} from '../../src/services/queue/messages.ts';
import {
  createQueue,
  deleteQueue,
  getQueueAcl,
  getQueueMetadata,
  setQueueAcl,
  setQueueMetadata,
} from '../../src/services/queue/queues.ts';
import { ACCOUNT, openQueues, QUEUE } from '../support/queue-storage.ts';

const queue = QUEUE;
const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

describe('Create Queue', () => {
  it('makes a queue, leaves an equal one as it is, and refuses one with other metadata', async () => {
    const { storage } = await openQueues();
    const make = (...metadata: [string, string][]) => createQueue(storage, { queue: 'queue', metadata });
    expect(await make(['Name', 'x'], ['other', 'y'])).toBe('created');
    expect(await make(['OTHER', 'y'], ['name', 'x'])).toBe('unchanged');
    expect(await storage.partition.read((at) => at.scan(keysUnder([ACCOUNT, 'p']), { limit: 9 }))).toHaveLength(2);
    for (const metadata of [
      [],
      [['name', 'x']],
      [
        ['name', 'X'],
        ['other', 'y'],
      ],
    ] as [string, string][][]) {
      await expect(make(...metadata)).rejects.toMatchObject({ code: 'QueueAlreadyExists', status: 409 });
    }
    expect((await getQueueMetadata(storage, { queue: 'queue' })).metadata).toEqual({ Name: 'x', other: 'y' });
  });

  it('makes one queue of twenty who ask for it', async () => {
    const world = await openQueues();
    const made = await Promise.all(
      times(20, (i) => createQueue(i % 2 ? world.beside() : world.storage, { queue: 'queue', metadata: [] })),
    );
    expect(made.filter((one) => one === 'created')).toHaveLength(1);
    expect(await world.findings()).toEqual([]);
  });

  it('refuses names and metadata that are none', async () => {
    const { storage } = await openQueues();
    const make = (name: string, metadata: [string, string][]) => createQueue(storage, { queue: name, metadata });
    await expect(make('Upper', [])).rejects.toMatchObject({ code: 'InvalidResourceName' });
    await expect(make('good', [['', 'x']])).rejects.toMatchObject({ code: 'EmptyMetadataKey' });
  });
});

describe('A queue that is not there', () => {
  it('is not found, by whatever is asked of it', async () => {
    const { storage } = await openQueues();
    const gone = { queue: 'gone' };
    const message = {
      ...gone,
      messageId: '00000000-0000-4000-8000-000000000000',
      popReceipt: 'AQAAAAAAAAAAAAAAAAAAAAAA',
    };
    for (const act of [
      () => deleteQueue(storage, gone),
      () => getQueueMetadata(storage, gone),
      () => setQueueMetadata(storage, { ...gone, metadata: [] }),
      () => getQueueAcl(storage, gone),
      () => setQueueAcl(storage, { ...gone, policies: [] }),
      () => putMessage(storage, { ...gone, text: '' }),
      () => getMessages(storage, { ...gone, count: 1, visibilitySeconds: 1 }),
      () => peekMessages(storage, { ...gone, count: 1 }),
      () => clearMessages(storage, gone),
      () => deleteMessage(storage, message),
      () => updateMessage(storage, { ...message, visibilitySeconds: 0 }),
      () => deleteMessage(storage, { ...message, messageId: 'none' }),
    ]) {
      await expect(act()).rejects.toMatchObject({ code: 'QueueNotFound', status: 404 });
    }
    expect(await queueAccess(storage, 'gone')).toBeUndefined();
  });

  it('is as one that is another than the caller was let in for', async () => {
    const { storage } = await openQueues();
    const { id } = (await queueAccess(storage, queue))!;
    const ask = (container: bigint) => putMessage({ ...storage, granted: { container } }, { queue, text: '' });
    await ask(id);
    await expect(ask(id + 1n)).rejects.toMatchObject({ code: 'QueueNotFound' });
  });
});

describe('Set Queue ACL', () => {
  it('keeps up to five policies, which then decide', async () => {
    const { storage } = await openQueues();
    const policies = times(5, (i) => ({ id: `policy ${i}`, permission: 'raup' }));
    await setQueueAcl(storage, { queue, policies });
    expect(await getQueueAcl(storage, { queue })).toEqual(policies);
    expect(await queueAccess(storage, queue)).toMatchObject({ level: undefined, policies });
    const tooMany = setQueueAcl(storage, { queue, policies: [...policies, { id: 'six' }] });
    await expect(tooMany).rejects.toMatchObject({ code: 'InvalidXmlDocument' });
  });
});

describe('List Queues', () => {
  it('gives every queue once, page by page, in the order of their names, and only those with the prefix', async () => {
    const { storage } = await openQueues();
    const names = [...times(600, (i) => `a-${String(i).padStart(3, '0')}`), 'b-one', 'b-two'];
    await Promise.all(names.map((name) => createQueue(storage, { queue: name, metadata: [['name', name]] })));
    const all = async (prefix: string | undefined, resultsMax: number | undefined) => {
      const seen: string[] = [];
      for (let marker: string | undefined; marker !== ''; ) {
        const page: ListedQueue[] = [];
        marker = await listQueues(storage, { prefix, marker, resultsMax }, (queues) => page.push(...queues));
        expect(page.length).toBeLessThanOrEqual(resultsMax ?? 5_000);
        for (const { name, metadata } of page) if (name !== queue) expect(metadata).toEqual({ name });
        seen.push(...page.map(({ name }) => name));
      }
      return seen;
    };
    expect(await all(undefined, undefined)).toEqual([...names, queue]);
    expect(await all('a-', 7)).toEqual(names.slice(0, 600));
    expect(await all('b-', 2)).toEqual(['b-one', 'b-two']);
    expect(await all('b-', 1)).toEqual(['b-one', 'b-two']);
    expect(await all('c', 1)).toEqual([]);
    expect(await all('x'.repeat(5_000), 1)).toEqual([]);
    for (const marker of ['x', '1-', '1-UPPER', `1-${'x'.repeat(5_000)}`]) {
      const page = listQueues(storage, { prefix: undefined, marker, resultsMax: 1 }, () => {});
      await expect(page).rejects.toMatchObject({ code: 'InvalidMarker', status: 400 });
    }
  });
});

describe('A message', () => {
  it('comes back as it was put, with its times', async () => {
    const { storage } = await openQueues();
    const text = 'é\u{1f600}\n<&>\u0085';
    const put = await putMessage(storage, { queue, text, ttlSeconds: 100 });
    expect(put).toMatchObject({ text, dequeueCount: 0, nextVisible: put.inserted });
    expect(put.expires - put.inserted).toBe(1_000_000_000n);
    const [taken] = await getMessages(storage, { queue, count: 1, visibilitySeconds: 30 });
    expect(taken).toMatchObject({ id: put.id, inserted: put.inserted, expires: put.expires, dequeueCount: 1, text });
    expect(taken!.nextVisible).toBeGreaterThan(put.inserted + 300_000_000n);
    const never = await putMessage(storage, { queue, text: '', ttlSeconds: -1 });
    expect(never.expires).toBe(3_155_378_975_999_999_999n);
  });

  it('may have 64 KiB of text, and no more', async () => {
    const { storage } = await openQueues();
    await putMessage(storage, { queue, text: 'é'.repeat(32 << 10) });
    const [held] = await getMessages(storage, { queue, count: 1, visibilitySeconds: 30 });
    const long = `${'é'.repeat(32 << 10)}x`;
    const refusal = { code: 'RequestBodyTooLarge', status: 413, details: { MaxLimit: '65536' } };
    await expect(putMessage(storage, { queue, text: long })).rejects.toMatchObject(refusal);
    const { id: messageId, popReceipt } = held!;
    const update = updateMessage(storage, { queue, messageId, popReceipt, visibilitySeconds: 0, text: long });
    await expect(update).rejects.toMatchObject(refusal);
  });

  it('is reached by the receipt of its put until somebody takes it, and by one whose time has passed until then', async () => {
    const world = await openQueues();
    const { storage } = world;
    const put = await putMessage(storage, { queue, text: 'text' });
    const act = (popReceipt: string, visibilitySeconds = 0) =>
      updateMessage(storage, { queue, messageId: put.id, popReceipt, visibilitySeconds });
    const first = await act(put.popReceipt, 5);
    await expect(act(put.popReceipt)).rejects.toMatchObject({ code: 'MessageNotFound', status: 404 });
    await world.advance(60);
    await act(first.popReceipt);
    const [taken] = await getMessages(storage, { queue, count: 1, visibilitySeconds: 30 });
    await expect(act(first.popReceipt)).rejects.toMatchObject({ code: 'MessageNotFound' });
    await act(taken!.popReceipt);
    expect(await peekMessages(storage, { queue, count: 1 })).toMatchObject([{ id: put.id, dequeueCount: 1 }]);
  });

  it('cannot be put, taken or hidden for longer or shorter than the service allows', async () => {
    const { storage } = await openQueues();
    const out = { code: 'OutOfRangeQueryParameterValue', status: 400 };
    for (const count of [0, 33, -1, 1.5]) {
      await expect(getMessages(storage, { queue, count, visibilitySeconds: 1 })).rejects.toMatchObject(out);
      await expect(peekMessages(storage, { queue, count })).rejects.toMatchObject(out);
    }
    for (const visibilitySeconds of [0, 604_801, -1]) {
      await expect(getMessages(storage, { queue, count: 1, visibilitySeconds })).rejects.toMatchObject({
        ...out,
        details: {
          QueryParameterName: 'visibilitytimeout',
          QueryParameterValue: String(visibilitySeconds),
          MinimumAllowed: '1',
          MaximumAllowed: '604800',
        },
      });
    }
    await expect(putMessage(storage, { queue, text: '', ttlSeconds: 0 })).rejects.toMatchObject({
      code: 'InvalidQueryParameterValue',
      details: { QueryParameterName: 'messagettl', QueryParameterValue: '0' },
    });
  });
});

describe('Receipts and ids that are not genuine', () => {
  it('are refused with 400 or 404, whatever they are, and change nothing', async () => {
    const { storage } = await openQueues();
    const [one, other] = [
      await putMessage(storage, { queue, text: 'one' }),
      await putMessage(storage, { queue, text: 'other' }),
    ];
    const changed = (text: string) =>
      fc
        .tuple(fc.nat(text.length - 1), fc.constantFrom(...'0123456789abcdefABCXYZ-_=+/ %'))
        .map(([at, character]) => text.slice(0, at) + character + text.slice(at + 1))
        .filter((given) => given.toLowerCase() !== text.toLowerCase());
    const receipt = fc.oneof(
      fc.string(),
      fc.base64String(),
      fc.stringMatching(/^AQA[\w-]{21}$/),
      fc.constant(other.popReceipt),
      changed(one.popReceipt),
    );
    const id = fc.oneof(fc.string(), fc.uuid(), fc.constant(other.id), changed(one.id));
    const wrong = fc.oneof(
      fc.tuple(fc.constant(one.id), receipt),
      fc.tuple(id, fc.constant(one.popReceipt)),
      fc.tuple(fc.string(), fc.string()),
    );
    await fc.assert(
      fc.asyncProperty(wrong, fc.boolean(), async ([messageId, popReceipt], isDelete) => {
        const message = { queue, messageId, popReceipt };
        const act = isDelete
          ? deleteMessage(storage, message)
          : updateMessage(storage, { ...message, visibilitySeconds: 9 });
        const { code, status } = await act.then(
          () => ({ code: 'done', status: 200 }),
          (error) => error,
        );
        expect(['400 InvalidQueryParameterValue', '404 MessageNotFound']).toContain(`${status} ${code}`);
      }),
      { numRuns: 2_000 },
    );
    expect((await peekMessages(storage, { queue, count: 9 })).map(({ text }) => text)).toEqual(['one', 'other']);
  });
});

describe('Reset', () => {
  it('leaves no queue and no message', async () => {
    const world = await openQueues();
    for (let i = 0; i < 5; i++) {
      await createQueue(world.storage, { queue: `queue-${i}`, metadata: [] });
      await putMessage(world.storage, { queue: `queue-${i}`, text: 'text' });
    }
    await emptyAccount(world.storage);
    expect(await world.findings()).toEqual([]);
    await world.sweep();
    expect(await world.kinds()).toEqual({});
  });
});

describe('check', () => {
  type Damage = (tx: Transaction) => Promise<unknown> | unknown;
  const rowsOf = (tx: Transaction, kind: string) => tx.scan(keysUnder([ACCOUNT, kind]), { limit: 100 });
  const damages: Record<string, [Damage, RegExp]> = {
    'a message that is gone without being counted': [
      async (tx) => tx.remove((await rowsOf(tx, 'q'))[0]!.key),
      /^queue \S+\/work: it counts 3 messages and has 2$/,
    ],
    'a message of a queue that does not exist': [
      async (tx) => tx.put(encodeKey([ACCOUNT, 'q', 5n, 0n, 1n, 1n, 1n]), (await rowsOf(tx, 'q'))[0]!.value),
      /"q","5".*its queue does not exist$/,
    ],
    'a message of a generation that is over': [
      async (tx) => {
        const [row] = await tx.scan(keysUnder([ACCOUNT, 'n']), { limit: 1 });
        const value = Buffer.from(row!.value);
        value.writeUInt8(9, value.length - 1);
        tx.put(row!.key, value);
      },
      /"q".*its queue does not exist$/,
    ],
    'a count of a queue that does not exist': [
      (tx) => tx.add(encodeKey([ACCOUNT, '#', 5n, 0n, 0n]), 4n),
      /"#","5".*its queue does not exist$/,
    ],
    'a message in a format of the future': [
      async (tx) => tx.put((await rowsOf(tx, 'q'))[0]!.key, Buffer.from([99])),
      /"q".*a row of format 99/,
    ],
    'a queue without properties': [
      async (tx) => tx.remove((await rowsOf(tx, 'p'))[0]!.key),
      /"n","queue","work".*it has no properties$/,
    ],
  };

  it.each(Object.entries(damages))('finds %s', async (_, [act, finding]) => {
    const world = await openQueues();
    for (let i = 0; i < 3; i++) await putMessage(world.storage, { queue, text: 'text' });
    expect(await world.findings()).toEqual([]);
    await world.partition.transact(encodeKey(['damage']), async (tx) => act(tx));
    const findings = await world.findings();
    expect(findings.some((one) => finding.test(one))).toBe(true);
  });
});
