/** Generator of valid histories of a queue: sequential operations, recorded as if they had overlapped. */
import fc from 'fast-check';
import {
  type Answer,
  FOREVER,
  type Held,
  heldAfter,
  hiddenSeconds,
  lifeSeconds,
  type Operation,
  type Request,
  STEP_SECONDS,
} from './queue-history.ts';
import type { Shape } from './random-histories.ts';

interface Choice {
  readonly kind: Request['kind'];
  readonly which: number;
  readonly count: number;
  readonly hidden: number;
  readonly life: number;
  readonly before: number;
  readonly after: number;
  readonly isLost: number;
  readonly isDone: boolean;
}

interface Message {
  readonly id: string;
  readonly inserted: number;
  readonly expires: number;
  receipt: string;
  dequeueCount: number;
  text: string;
  visible: number;
}

const part = fc.double({ min: 0, max: 1, noNaN: true });
const kinds = ['put', 'put', 'put', 'get', 'get', 'get', 'get', 'peek', 'update', 'update', 'delete'] as const;
const choice: fc.Arbitrary<Choice> = fc.record({
  kind: fc.constantFrom(
    ...kinds,
    'delete' as const,
    'advance' as const,
    'advance' as const,
    'clear' as const,
    'settled' as const,
  ),
  which: fc.nat(5),
  count: fc.constantFrom(1, 1, 2, 32),
  hidden: fc.nat(3),
  life: fc.constantFrom(FOREVER, 1, 2, 4),
  before: part,
  after: part,
  isLost: fc.integer({ min: 1, max: 10 }),
  isDone: fc.boolean(),
});

export function history({ lengthMax, spread, unanswered }: Shape): fc.Arbitrary<Operation[]> {
  return fc.array(choice, { minLength: lengthMax >> 1, maxLength: lengthMax, size: 'max' }).map((choices) => {
    const queue = startQueue();
    const first = { kind: 'put', text: 'first', hidden: 0, life: FOREVER } as const;
    const operations: Operation[] = [
      { queue: 'queue', client: -1, request: first, called: -9, returned: { at: -8, answer: queue.act(first, -1) } },
    ];
    /** Clients know only their answers. */
    let settled = -Infinity;
    const told: Held[] = [{ id: 'm-1', receipt: 'r-1' }];
    for (const [i, made] of choices.entries()) {
      const request = queue.requestOf(made, i, told[told.length - 1 - (made.which % told.length)]!);
      const isLost = made.isLost <= unanswered && request.kind !== 'settled';
      const answer = !isLost || made.isDone ? queue.act(request, i) : undefined;
      const returned = isLost || !answer ? {} : { returned: { at: i + made.after * spread, answer } };
      const name = request.kind === 'advance' || request.kind === 'settled' ? '' : 'queue';
      // Nothing that was called before all was settled happens after.
      if (request.kind === 'settled') settled = i;
      const called = Math.max(settled, i - made.before * spread);
      const operation = { queue: name, client: i, request, called, ...returned };
      operations.push(operation);
      told.push(...heldAfter(operation));
    }
    return operations;
  });
}

function startQueue() {
  let messages: Message[] = [];
  let step = 0;
  const seen = () => messages.filter(({ visible, expires }) => visible <= step && step < expires);
  const nextVisible = (hidden: number) => step * STEP_SECONDS + hiddenSeconds(hidden);
  const tell = ({ id, inserted, expires, dequeueCount, text }: Message, life = expires - inserted) => {
    const seconds = inserted * STEP_SECONDS;
    const end = life === FOREVER ? 10 ** 10 : seconds + lifeSeconds(life);
    return { id, inserted: seconds, expires: end, dequeueCount, text };
  };
  const move = (message: Message, hidden: number, receipt: string) => {
    message.receipt = receipt;
    message.visible = hidden === 0 ? -1 : step + hidden;
    return { receipt, nextVisible: nextVisible(hidden) };
  };

  function requestOf({ kind, which, count, hidden, life }: Choice, i: number, held: Held): Request {
    switch (kind) {
      case 'put':
        return { kind, text: `t${i}`, hidden: hidden < life ? hidden : 0, life };
      case 'get':
        return { kind, count, hidden: hidden + 1 };
      case 'peek':
        return { kind, count };
      case 'update':
        return { kind, held, hidden, text: which % 2 === 0 ? `t${i}` : undefined };
      case 'delete':
        return { kind, held };
      default:
        return { kind: kind === 'clear' && which > 0 ? 'advance' : (kind as 'clear' | 'advance' | 'settled') };
    }
  }

  function act(request: Request, i: number): Answer {
    switch (request.kind) {
      case 'put': {
        const { text, hidden, life } = request;
        const place = { receipt: `r${i}`, visible: hidden === 0 ? -1 : step + hidden };
        const message = { id: `m${i}`, inserted: step, expires: step + life, dequeueCount: 0, text, ...place };
        messages.push(message);
        const { dequeueCount: _, text: __, ...told } = tell(message, life);
        return { messages: [{ ...told, receipt: message.receipt, nextVisible: nextVisible(hidden) }] };
      }
      case 'get': {
        const taken = seen().slice(0, request.count);
        return {
          messages: taken.map((message, n) => {
            message.dequeueCount++;
            return { ...tell(message), ...move(message, request.hidden, `r${i}.${n}`) };
          }),
        };
      }
      case 'peek':
        return {
          messages: seen()
            .slice(0, request.count)
            .map((message) => tell(message)),
        };
      case 'update':
      case 'delete': {
        const { id, receipt } = request.held;
        const message = messages.find((each) => each.id === id && each.receipt === receipt && step < each.expires);
        if (!message) return { refused: 'MessageNotFound' };
        if (request.kind === 'delete') {
          messages = messages.filter((each) => each !== message);
          return { done: true };
        }
        if (step + request.hidden > message.expires) return { refused: 'InvalidQueryParameterValue' };
        message.text = request.text ?? message.text;
        return move(message, request.hidden, `r${i}`);
      }
      case 'clear':
        messages = [];
        return { done: true };
      case 'advance':
        step++;
        return { done: true };
      case 'settled':
        return { done: true };
    }
  }

  return { requestOf, act };
}
