import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { newPipeline, QueueClient, StorageSharedKeyCredential } from '@azure/storage-queue';
import { describe, expect, it, onTestFinished } from 'vitest';
import { restartableServer } from '../support/restartable-servers.ts';
import { checkFolder } from '../support/server-process.mjs';
import { account, accountKey } from '../support/test-server.ts';
import { type Delivery, faultsOf, HIDDEN_SECONDS, startHost } from './message-loop.ts';

const MESSAGES = 320;
const KILLS = [MESSAGES / 4, MESSAGES / 2];
const credential = new StorageSharedKeyCredential(account, accountKey);
const pipeline = newPipeline(credential, { retryOptions: { maxTries: 1 } });

const isPoison = (at: number) => at % 50 === 7;
const failsOnce = (at: number) => at % 10 === 3;
/** Worked on for longer than a message hides, so that renewals count. */
const isLong = (at: number) => at % 40 === 11;
const TICKS_OF_LONG = 4;
/** By then a message is lost, or comes again and again. */
const TICKS_MAX = 2_000;
const FOR_EVER = { messageTimeToLive: -1 };

describe('The loop of two hosts over a queue, whose server is killed twice', () => {
  it('works on every message, loses none, and gets none before its time', { timeout: 240_000 }, async () => {
    const location = mkdtempSync(join(tmpdir(), 'holdfast-loop-'));
    const server = restartableServer(['--location', location, '--test-clock', '--log-level', 'warn']);
    onTestFinished(async () => {
      await server.kill();
      rmSync(location, { recursive: true, force: true });
    });
    await server.start();
    const clientOf = (name: string) => {
      const origin = server.originOf('Queue');
      return origin && new QueueClient(`${origin}/${account}/${name}`, pipeline);
    };
    const queue = () => clientOf('work') || undefined;
    const poison = () => clientOf('work-poison') || undefined;
    await queue()!.create();
    await poison()!.create();

    const deliveries: Delivery[] = [];
    const done = new Map<string, number>();
    const aside = new Set<string>();
    const sent = new Set<string>();
    let ticks = 0;
    let producing = true;

    async function work(text: string, { dequeueCount }: Delivery): Promise<void> {
      const at = Number(text.slice(2));
      if (isLong(at)) {
        const until = ticks + TICKS_OF_LONG;
        while (ticks < until) await pause(5);
      }
      if (isPoison(at) || (failsOnce(at) && dequeueCount === 1)) throw new Error('the work failed');
    }
    const hosts = [0, 1].map(() =>
      startHost({
        queue,
        poison,
        work,
        onDelivery: (delivery) => deliveries.push(delivery),
        onDone: (text) => done.set(text, (done.get(text) ?? 0) + 1),
        onPoison: (text) => aside.add(text),
      }),
    );

    async function produce(): Promise<void> {
      for (let at = 0; at < MESSAGES; at++) {
        // A client that does not know whether the message was put puts it again.
        while (
          !(await queue()
            ?.sendMessage(`m-${at}`, FOR_EVER)
            .catch(() => undefined))
        )
          await pause(10);
        sent.add(`m-${at}`);
      }
      producing = false;
    }

    /** Half of the visibility timeout passes; then all hosts renew their messages. */
    async function tick(): Promise<void> {
      const origin = server.origin();
      if (origin === undefined) return pause(10);
      const path = `/_holdfast/clock/advance?seconds=${HIDDEN_SECONDS / 2}`;
      const answer = await fetch(new URL(path, origin), { method: 'POST' }).catch(() => undefined);
      if (!answer?.ok) return;
      await Promise.all(hosts.map((host) => host.renew()));
      ticks++;
      await pause(20);
    }

    async function isOver(): Promise<boolean> {
      if (producing || done.size + aside.size < MESSAGES) return false;
      const properties = await queue()?.getProperties();
      return properties?.approximateMessagesCount === 0;
    }

    async function killing(): Promise<void> {
      for (const count of KILLS) {
        while (done.size < count) await pause(1);
        await server.kill();
        await server.start();
      }
    }
    const working = Promise.all([produce(), killing()]);
    while (!(await isOver()) && ticks < TICKS_MAX) await tick();
    await working;
    await Promise.all(hosts.map((host) => host.stop()));

    expect(faultsOf(deliveries)).toEqual([]);
    expect(sent.size).toBe(MESSAGES);
    const numbers = Array.from({ length: MESSAGES }, (_, at) => at);
    expect(numbers.filter((at) => !isPoison(at) && !done.has(`m-${at}`))).toEqual([]);
    expect([...aside].sort()).toEqual(
      numbers
        .filter(isPoison)
        .map((at) => `m-${at}`)
        .sort(),
    );
    expect([...done.keys()].filter((text) => aside.has(text))).toEqual([]);
    const { peekedMessageItems } = await poison()!.peekMessages({ numberOfMessages: 32 });
    expect(new Set(peekedMessageItems.map(({ messageText }) => messageText))).toEqual(aside);
    // Otherwise the test has seen no effect of a crash.
    expect(deliveries.length).toBeGreaterThan(MESSAGES);
    await server.kill('SIGTERM');
    expect(await checkFolder(location)).toMatchObject({ code: 0 });
  });
});

describe('The check of deliveries', () => {
  const delivery = (more: Partial<Delivery>): Delivery => ({
    id: 'id',
    text: 'm',
    dequeueCount: 1,
    takenAt: 0,
    hiddenUntil: 600_000,
    returned: false,
    deleted: false,
    ...more,
  });

  it('is found', () => {
    const later = (takenAt: number, dequeueCount = 2) => delivery({ takenAt, dequeueCount });
    expect(faultsOf([delivery({}), later(600_000)])).toEqual([]);
    expect(faultsOf([delivery({ returned: true }), later(1_000)])).toEqual([]);
    expect(faultsOf([later(599_000), delivery({})])).toEqual([expect.stringContaining('1 s before its time')]);
    expect(faultsOf([delivery({ deleted: true }), later(900_000)])).toEqual([expect.stringContaining('deleted')]);
    expect(faultsOf([delivery({}), later(700_000, 1)])).toEqual([expect.stringContaining('twice as the same')]);
  });
});
