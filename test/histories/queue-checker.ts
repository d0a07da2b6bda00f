/**
 * Checks whether a history of queues is linearizable, message by message: operations on one do not affect the others, except that an
 * answer "nothing is there" speaks of all of them at once, and so does Clear Messages.
 */
import { grouped } from './history.ts';
import {
  describeOperation,
  FOREVER,
  heldAfter,
  isRefused,
  lifeSeconds,
  messagesOf,
  type Operation,
  type Request,
  type Told,
} from './queue-history.ts';
import { type Deed, describeState } from './queue-model.ts';
import { type Done, statesAfter, Undecided } from './queue-search.ts';
import { type Time, timeIn } from './queue-time.ts';

export interface Violation {
  readonly about: string;
  readonly reason: string;
  readonly failing: Operation;
  /** The operations that led there, by the time of their calls. */
  readonly before: readonly Operation[];
  /** Possible states of the message before. */
  readonly states: readonly string[];
}

interface Known {
  readonly id: string;
  readonly put: Operation;
  /** In which it was put. */
  readonly step: number;
  /** In which it is there no more. */
  readonly expires: number;
  /** Operations that name it, or return it. */
  readonly named: readonly Operation[];
}

interface Lasting {
  readonly operation: Operation;
  /** By then it has happened, or never will. */
  readonly until: number;
}

/** The violations, at most one of a message. */
export function checkHistory(operations: readonly Operation[]): Violation[] {
  const time = timeIn(operations);
  const wrong = (failing: Operation, about: string, reason: string): Violation => {
    return { about, reason, failing, before: [], states: [] };
  };
  if (time.faults.length > 0) return time.faults.map(({ operation, reason }) => wrong(operation, 'the time', reason));
  const settled = operations.filter(({ request }) => request.kind === 'settled');
  const queues = grouped(operations, ({ queue }) => queue);
  queues.delete('');
  return [...queues.values()].flatMap((own) => {
    const puts = new Map(own.flatMap((put) => (put.request.kind === 'put' ? [[put.request.text, put] as const] : [])));
    const repeated = repeatedReceipts(own).map((operation) => wrong(operation, 'receipts', 'it was given before'));
    const ofAll = [...own.filter(concernsAll), ...settled].map((operation) => {
      const end = operation.returned ?? settled.find(({ called }) => called > operation.called)?.returned;
      return { operation, until: end?.at ?? Infinity };
    });
    const seen = new Set<Operation>();
    const messages = [...namedIn(own)].flatMap(([id, named]): Violation[] => {
      const tellings = tellingsOf(id, named);
      const first = tellings[0];
      if (!first) return [];
      const isPut = named.find(({ request }) => request.kind === 'put');
      const put = isPut ?? tellings.map(({ text = '' }) => puts.get(text)).find((found) => found !== undefined);
      if (!put || seen.has(put)) return [wrong(named[0]!, id, put ? 'one put left two messages' : 'nobody put it')];
      seen.add(put);
      const { inserted, expires } = first;
      if (tellings.some((told) => told.inserted !== inserted || told.expires !== expires))
        return [wrong(named.at(-1)!, id, 'it has another beginning or end than before')];
      const { life } = put.request as Extract<Request, { kind: 'put' }>;
      if (!isLifetime(expires - inserted, life))
        return [wrong(named.at(-1)!, id, 'it has another lifetime than was asked for')];
      const step = time.stepOf(inserted);
      const known: Known = { id, put, step, expires: step + life, named: isPut ? named : [put, ...named] };
      return checkMessage(historyOf(known, ofAll, time), known);
    });
    return [...repeated, ...messages];
  });
}

/** In rounded seconds. */
function isLifetime(seconds: number, life: number): boolean {
  return life === FOREVER ? seconds > CENTURY_SECONDS : Math.abs(seconds - lifeSeconds(life)) <= 1;
}

const CENTURY_SECONDS = 3_000_000_000;

/** By message, the operations that name it, or tell of it. */
function namedIn(operations: readonly Operation[]): Map<string, Operation[]> {
  const named = new Map<string, Operation[]>();
  for (const operation of operations) {
    const { request } = operation;
    const ids = 'held' in request ? [request.held.id] : new Set(messagesOf(operation).map(({ id }) => id));
    for (const id of ids) named.set(id, [...(named.get(id) ?? []), operation]);
  }
  return named;
}

const tellingsOf = (id: string, named: readonly Operation[]): Told[] =>
  named.flatMap((operation) => messagesOf(operation).filter((told) => told.id === id));

/** It constrains every message, or may have dequeued any. */
function concernsAll(operation: Operation): boolean {
  const { request, returned } = operation;
  if (request.kind === 'clear') return true;
  if (request.kind === 'get' && !returned) return true;
  const isLook = request.kind === 'get' || request.kind === 'peek';
  return isLook && returned !== undefined && messagesOf(operation).length === 0;
}

function historyOf(known: Known, ofAll: readonly Lasting[], time: Time): Map<Done, Operation> {
  const { put, named } = known;
  const end = endOf(known, ofAll, time);
  const begin = put.called;
  const others = ofAll.flatMap(({ operation, until }) =>
    operation.called <= end && until >= begin ? [operation] : [],
  );
  const history = new Map<Done, Operation>();
  for (const operation of [...named, ...others]) {
    const { called, returned } = operation;
    for (const deed of deedsOf(operation, known, time)) {
      const done = { deed, called, returned: returned?.at, step: returned && time.atMost(returned.at) };
      history.set(done, operation);
    }
  }
  return history;
}

function checkMessage(operations: ReadonlyMap<Done, Operation>, { id }: Known): Violation[] {
  const history = [...operations.keys()];
  if (seemsRight(history)) return [];
  const answered = history.filter(({ returned }) => returned !== undefined);
  answered.sort((one, other) => one.returned! - other.returned!);
  let [right, wrong] = [-1, answered.length - 1];
  while (wrong - right > 1) {
    const middle = (right + wrong) >> 1;
    if (seemsRight(until(history, answered[middle]!))) right = middle;
    else wrong = middle;
  }
  const failing = answered[wrong]!;
  // Throws where the search comes to no end: such a history is neither right nor wrong.
  statesAfter(until(history, failing), 1);
  const others = history.filter((done) => done !== failing);
  return [
    {
      about: `message ${id}`,
      reason: 'no order of the operations explains this answer',
      failing: operations.get(failing)!,
      before: [...operations].filter(([done]) => done.called <= failing.returned!).map(([, operation]) => operation),
      states: statesAfter(until(others, failing)).map(describeState),
    },
  ];
}

function seemsRight(history: readonly Done[]): boolean {
  try {
    return statesAfter(history, 1).length > 0;
  } catch (error) {
    if (error instanceof Undecided) return false;
    throw error;
  }
}

/** The history as of this answer: operations that have none by then may never get one. */
function until(history: readonly Done[], { returned: end }: Done): Done[] {
  return history
    .filter(({ called }) => called <= end!)
    .map((done) => {
      if (done.returned === undefined || done.returned <= end!) return done;
      const { returned: _, step: __, ...open } = done;
      return open;
    });
}

/** From then on the message is certainly deleted, and answers about the whole queue do not constrain it. */
function endOf({ id, put, named, expires }: Known, ofAll: readonly Lasting[], time: Time): number {
  const born = put.returned?.at ?? Math.min(...named.flatMap(({ returned }) => returned?.at ?? []));
  const ends = [...named, ...ofAll.map(({ operation }) => operation)].flatMap(({ request, called, returned }) => {
    if (!returned || 'refused' in returned.answer) return [];
    const isDeletion = request.kind === 'delete' && request.held.id === id;
    return isDeletion || (request.kind === 'clear' && called >= born) ? [returned.at] : [];
  });
  return Math.min(expires === FOREVER ? Infinity : time.reachedAt(expires), ...ends);
}

/** The effect of the operation on this message. */
function deedsOf(operation: Operation, { id, put, step, expires }: Known, time: Time): Deed[] {
  const { request, returned } = operation;
  const at = time.during(operation);
  if (request.kind === 'settled') return [{ kind: 'settled' }];
  if (request.kind === 'clear') return isRefused(operation) ? [] : [{ kind: 'clear' }];
  if (operation === put && request.kind === 'put') {
    const { text, hidden } = request;
    const { receipt } = messagesOf(put)[0] ?? {};
    return [{ kind: 'put', at: { from: step, to: step }, text, hidden, receipt, expires }];
  }
  if (request.kind === 'get' || request.kind === 'peek') {
    if (!returned) return request.kind === 'get' ? [{ kind: 'take', at, hidden: request.hidden }] : [];
    const messages = messagesOf(operation);
    if (messages.length === 0 && !isRefused(operation)) return [{ kind: 'see nothing', at }];
    return messages
      .filter((message) => message.id === id)
      .map(({ receipt, dequeueCount = 0, text = '' }): Deed => {
        const told = { receipt, dequeueCount, text };
        return request.kind === 'get' ? { kind: 'take', at, hidden: request.hidden, told } : { kind: 'see', at, told };
      });
  }
  if (!('held' in request) || request.held.id !== id) return [];
  const { receipt } = request.held;
  if (returned && 'refused' in returned.answer) {
    if (returned.answer.refused === 'MessageNotFound') return [{ kind: 'miss', at, receipt }];
    const hidden = request.kind === 'update' ? request.hidden : 0;
    return [{ kind: 'exceed', at, receipt, hidden }];
  }
  if (request.kind === 'delete') return [{ kind: 'delete', at, receipt }];
  const next = returned && 'receipt' in returned.answer ? returned.answer.receipt : undefined;
  return [{ kind: 'update', at, receipt, hidden: request.hidden, text: request.text, next }];
}

function repeatedReceipts(operations: readonly Operation[]): Operation[] {
  const given = new Set<string>();
  return operations.filter((operation) => {
    const receipts = heldAfter(operation).map(({ receipt }) => receipt);
    const isRepeated = receipts.some((receipt) => given.has(receipt)) || new Set(receipts).size < receipts.length;
    for (const receipt of receipts) given.add(receipt);
    return isRepeated;
  });
}

const LINES_MAX = 30;

/** A violation as text. */
export function explain({ about, reason, failing, before, states }: Violation): string {
  const all = [...new Set(before)].sort((one, other) => one.called - other.called);
  return [
    `${about} of ${failing.queue}: ${reason}:`,
    `  ${describeOperation(failing)}`,
    ...(states.length > 0 ? ['before it the message was', ...states.map((state) => `  ${state}`)] : []),
    ...(all.length > 0 ? [`what came before and has to do with it, ${all.length} operations:`] : []),
    ...all.slice(-LINES_MAX).map((operation) => `  ${describeOperation(operation)}`),
  ].join('\n');
}
