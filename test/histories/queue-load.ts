/** Clients that work on a few queues at once, in every way that can collide, and record the answers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Server, startServers, stopServers } from '../support/restartable-servers.ts';
import {
  CLOCK_MOVES_MILLISECONDS,
  connections,
  type More,
  PATIENCE_MILLISECONDS,
  randomOf,
  SHORT_PATIENCE_MILLISECONDS,
} from './load.ts';
import { FOREVER, type Held, heldAfter, messagesOf, type Operation, type Request } from './queue-history.ts';
import { moveTime, type Outcome, perform, type QueueWire } from './queue-requests.ts';

export interface LoadOptions {
  /** They have a test clock. */
  readonly servers: readonly Server[];
  readonly seed: number;
  readonly clients?: number;
  /** Milliseconds that each client rests between two operations. */
  readonly rest?: number;
}

export interface Recorded {
  readonly operations: readonly Operation[];
  /** Why there was no answer, and how often. */
  readonly unknown: Readonly<Record<string, number>>;
}

/** Messages that a client may name: its own by their newest receipts, and those that any client received lately. */
interface Receipts {
  own: Held[];
  readonly lately: Held[];
}

const LATELY_MAX = 40;
const HELD_MAX = 6;
const HIDDEN_MAX = 4;
/** Most work is done on the first. */
const QUEUES = 3;

/** After it nothing is under way that was before, and had no answer. */
export type Settle = (ending: () => Promise<void>) => Promise<void>;

let records = 0;

/**
 * Goes on while the work does. Then all servers are started again, so that nothing is under way any more, and time moves until
 * every message can be seen that is still there; each must be.
 */
export async function record(
  options: LoadOptions,
  work: (more: More, settle: Settle) => Promise<void>,
): Promise<Recorded> {
  const { servers, clients = 16, rest = 0 } = options;
  const name = `histories-${++records}`;
  const queues = Array.from({ length: QUEUES }, (_, i) => `${name}-${i}`);
  const operations: Operation[] = [];
  const unknown: Record<string, number> = {};
  const random = randomOf(options.seed);
  const below = (count: number): number => Math.floor(random() * count);
  const pick = <T>(list: readonly T[]): T => list[below(list.length)]!;
  const lately = new Map(queues.map((queue) => [queue, [] as Held[]]));
  let written = 0;
  let answers = 0;
  let isOver = false;

  async function note(client: number, queue: string, request: Request, doing: () => Promise<Outcome>) {
    const called = performance.now();
    const outcome = await doing();
    const at = performance.now();
    if (outcome === 'never sent') return undefined;
    if ('unknown' in outcome) unknown[outcome.unknown] = (unknown[outcome.unknown] ?? 0) + 1;
    const returned = 'answer' in outcome ? { returned: { at, answer: outcome.answer } } : {};
    const operation = { queue, client, request, called, ...returned };
    operations.push(operation);
    if (!('answer' in outcome)) return undefined;
    answers++;
    return operation;
  }

  const ask = (client: number, queue: string, request: Request, wire: QueueWire) =>
    note(client, queue, request, () => perform(queue, request, wire));
  const step = (client: number, origin: string, patience: number) =>
    note(client, '', { kind: 'advance' }, () => moveTime(origin, patience));

  async function act(client: number): Promise<void> {
    const connected = connections();
    const own = new Map(queues.map((queue) => [queue, { own: [], lately: lately.get(queue)! } as Receipts]));
    for (let home = client; !isOver; ) {
      const server = random() < 0.2 ? pick(servers) : servers[home % servers.length]!;
      const origin = server.originOf('Queue');
      if (origin === undefined) {
        home++;
        await sleep(5);
        continue;
      }
      const queue = random() < 0.6 ? queues[0]! : pick(queues);
      const request = next(own.get(queue)!);
      const patience = random() < 0.3 ? SHORT_PATIENCE_MILLISECONDS : PATIENCE_MILLISECONDS;
      const operation = await ask(client, queue, request, { connection: connected.to(origin), patience });
      if (operation) remember(operation, own.get(queue)!);
      else home++;
      if (rest > 0) await sleep(rest * 2 * random());
    }
    connected.close();
  }

  function remember(operation: Operation, receipts: Receipts): void {
    const { request } = operation;
    const held = heldAfter(operation);
    if ('held' in request) receipts.own = receipts.own.filter(({ id }) => id !== request.held.id);
    // The oldest are forgotten, and come back.
    receipts.own = [...receipts.own, ...held].slice(-HELD_MAX);
    receipts.lately.push(...held);
    receipts.lately.splice(0, receipts.lately.length - LATELY_MAX);
  }

  function next({ own, lately: others }: Receipts): Request {
    const roll = random() * 100;
    const hidden = 1 + below(HIDDEN_MAX);
    if (roll < 26) {
      const delay = random() < 0.7 ? 0 : hidden;
      const life = random() < 0.4 ? FOREVER : delay + 1 + below(6);
      return { kind: 'put', text: textOf(), hidden: delay, life };
    }
    if (roll < 60) return { kind: 'get', count: pick([1, 1, 1, 2, 5, 32]), hidden };
    if (roll < 66) return { kind: 'peek', count: pick([1, 4, 32]) };
    if (roll < 66.3) return { kind: 'clear' };
    const held = own.length > 0 && random() < 0.75 ? pick(own) : pick(others);
    if (!held) return { kind: 'get', count: 1, hidden };
    if (roll < 86) return { kind: 'delete', held };
    const text = random() < 0.5 ? textOf() : undefined;
    return { kind: 'update', held, hidden: random() < 0.4 ? 0 : hidden, text };
  }

  const textOf = () => `t${++written}`;

  async function moveClock(client: number): Promise<void> {
    while (!isOver) {
      await sleep(CLOCK_MOVES_MILLISECONDS * 2 * random());
      const origin = pick(servers).origin();
      if (origin !== undefined) await step(client, origin, SHORT_PATIENCE_MILLISECONDS);
    }
  }

  const more: More = async (count) => {
    const goal = answers + count;
    while (answers < goal) await sleep(10);
  };

  async function settle(ending: () => Promise<void>): Promise<void> {
    await ending();
    await note(clients + 1, '', { kind: 'settled' }, async () => ({ answer: { done: true } }));
  }

  async function drain(client: number): Promise<void> {
    await settle(async () => {
      await stopServers(servers);
      await sleep(500);
    });
    await startServers(servers);
    const connected = connections();
    const taken = new Set<string>();
    for (let steps = 0; steps <= HIDDEN_MAX; steps++) {
      for (const queue of queues) {
        for (let isLeft = true; isLeft; ) {
          const connection = connected.to(pick(servers).originOf('Queue')!);
          const request = { kind: 'get' as const, count: 32, hidden: HIDDEN_MAX + 2 };
          const operation = await ask(client, queue, request, { connection, patience: PATIENCE_MILLISECONDS });
          const ids = operation ? messagesOf(operation).map(({ id }) => id) : [];
          // One that comes twice is a violation, and might come for ever.
          isLeft = !operation || (ids.length > 0 && !ids.some((id) => taken.has(id)));
          for (const id of ids) taken.add(id);
        }
      }
      while (!(await step(client, pick(servers).origin()!, PATIENCE_MILLISECONDS))) await sleep(100);
    }
    connected.close();
  }

  /** The first recorded instant is one before time moves. */
  async function begin(client: number): Promise<void> {
    const connected = connections();
    const connection = connected.to(servers[0]!.originOf('Queue')!);
    for (const queue of queues) {
      const { status, body } = await connection.send('PUT', `/${queue}`);
      // 204: its commit was cut, happened all the same, and was done again.
      if (status !== 201 && status !== 204) throw new Error(`Create Queue was answered ${status}: ${body}`);
    }
    const request = { kind: 'put' as const, text: textOf(), hidden: 0, life: FOREVER };
    if (!(await ask(client, queues[0]!, request, { connection, patience: PATIENCE_MILLISECONDS })))
      throw new Error('The first message was not put.');
    connected.close();
  }

  await begin(clients + 1);
  const all = Array.from({ length: clients }, (_, client) => act(client));
  all.push(moveClock(clients));
  try {
    await work(more, settle);
  } finally {
    isOver = true;
    await Promise.all(all);
  }
  await drain(clients + 1);
  return { operations, unknown };
}
