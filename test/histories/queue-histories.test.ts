/** `npm run test:histories -- --queue --minutes 3` does it for longer. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { restartableServer, root, type Server, startServers, stopServers } from '../support/restartable-servers.ts';
import { connections, type More } from './load.ts';
import { type Bug, isFound, planted, temporaryFolder } from './planted-bugs.ts';
import { FOREVER, messagesOf, type Operation, type Request } from './queue-history.ts';
import { record, type Settle } from './queue-load.ts';
import { report } from './queue-report.ts';
import { moveTime, perform } from './queue-requests.ts';

const minutes = Number(process.env.HOLDFAST_HISTORIES_MINUTES ?? 0);

/** @param copy of the repository, with a bug */
async function load(work: (more: More, server: Server, settle: Settle) => Promise<void>, copy = root) {
  const server = restartableServer(['--location', temporaryFolder(), '--test-clock'], copy);
  onTestFinished(() => stopServers([server]));
  await startServers([server]);
  const seed = Date.now() % 2 ** 31;
  return report(await record({ servers: [server], seed }, (more, settle) => work(more, server, settle)));
}

/** And let it stand still for a while. */
async function killed(more: More, server: Server, settle: Settle): Promise<void> {
  await more(400);
  await settle(() => server.kill());
  await server.start();
  await more(400);
  server.pause();
  await sleep(500);
  server.resume();
}

describe('The history of sixteen clients of a few queues is linearizable', {
  timeout: 120_000 + minutes * 90_000,
}, () => {
  it('on disk, even when the server is killed and restarted', async () => {
    const end = performance.now() + minutes * 60_000;
    const violations = await load(async (more, server, settle) => {
      for (let round = 0; round < 2 || performance.now() < end; round++) await killed(more, server, settle);
      await more(400);
    });
    expect(violations).toEqual([]);
  });
});

describe.skipIf(minutes > 0)('One consumer', { timeout: 120_000 }, () => {
  it('gets messages in the order in which they become visible, and of simultaneous ones first the one put first', async () => {
    const server = restartableServer(['--location', temporaryFolder(), '--test-clock']);
    onTestFinished(() => stopServers([server]));
    await startServers([server]);
    const connected = connections();
    onTestFinished(connected.close);
    const wire = { connection: connected.to(server.originOf('Queue')!), patience: 90_000 };
    await wire.connection.send('PUT', '/ordered');
    const ask = async (request: Request): Promise<Operation> => {
      const outcome = await perform('ordered', request, wire);
      if (outcome === 'never sent' || 'unknown' in outcome) throw new Error(`${request.kind} was not answered`);
      return { queue: 'ordered', client: 0, request, called: 0, returned: { at: 0, answer: outcome.answer } };
    };
    const get = async (count: number, hidden: number) =>
      messagesOf(await ask({ kind: 'get', count, hidden })).map(({ text }) => text!);
    const put = Array.from({ length: 96 }, (_, i) => ({ text: `t${i}`, hidden: i % 4 }));
    for (const { text, hidden } of put) await ask({ kind: 'put', text, hidden, life: FOREVER });
    const inOrder = put.toSorted((one, other) => one.hidden - other.hidden).map(({ text }) => text);
    // All that are taken at once can be seen again at once.
    expect(await get(24, 3)).toEqual(inOrder.slice(0, 24));
    for (let steps = 0; steps < 4; steps++) await moveTime(server.origin()!, 90_000);
    const left: string[] = [];
    for (const count of [1, 2, 5, 32, 7, 32, 32]) left.push(...(await get(count, 9)));
    // They were taken after the last was put, for as long as any hides.
    expect(left).toEqual([...inOrder.slice(24), ...inOrder.slice(0, 24)]);
  });
});

describe.skipIf(minutes > 0)('The checker of queues finds a violation', { timeout: 120_000 }, () => {
  const dequeue = 'services/queue/dequeue.js';
  const messages = 'services/queue/messages.js';
  const bugs: Bug[] = [
    {
      title: 'when a message that is taken does not hide',
      file: dequeue,
      find: /visibleAt: addSeconds\(tx\.now, seconds\)/,
      replace: 'visibleAt: tx.now',
    },
    {
      title: 'when a message that is taken stays in its place, too',
      file: dequeue,
      find: /tx\.remove\(key\);/,
      replace: '',
    },
    {
      title: 'when a message that is taken again and again counts as taken once',
      file: dequeue,
      find: /message\.dequeueCount \+ 1/,
      replace: '1',
    },
    {
      title: 'when an update leaves the receipt before it good',
      file: messages,
      find: /tx\.remove\(message\.key\);\s+const moved/,
      replace: 'const moved',
    },
    {
      title: 'when a delete does nothing',
      file: messages,
      find: /tx\.remove\(message\.key\);\s+countMessage\([^)]*-1\);/,
      replace: '',
    },
    {
      title: 'when an update forgets its text',
      file: messages,
      find: /text: text \?\? message\.text/,
      replace: 'text: message.text',
    },
    {
      title: 'when messages come back too late',
      file: 'rules/queue/messages.js',
      find: /visibleAt <= now/,
      replace: 'visibleAt + 3000000000n <= now',
    },
  ];
  for (const bug of bugs) {
    it(bug.title, async () => {
      const copy = planted(bug);
      expect(await isFound(() => load((more) => more(800), copy))).toBe(true);
    });
  }
});
