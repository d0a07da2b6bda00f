import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkHistory, explain } from './queue-checker.ts';
import {
  type Answer,
  FOREVER,
  hiddenSeconds,
  lifeSeconds,
  messagesOf,
  type Operation,
  type Request,
  STEP_SECONDS,
  type Told,
} from './queue-history.ts';
import type { Shape } from './random-histories.ts';
import { history } from './random-queue-histories.ts';

type Line = [called: number, returned: number, request: Request, answer: Answer | 'no answer'];

/** One operation a line: call, return, request, and answer. Clients are numbered by their lines. */
function told(...lines: Line[]): Operation[] {
  return lines.map(([called, at, request, answer], client) => ({
    ...{ queue: isOfAll(request) ? '' : 'queue', client, request, called },
    ...(answer === 'no answer' ? {} : { returned: { at, answer } }),
  }));
}

const isOfAll = ({ kind }: Request) => kind === 'advance' || kind === 'settled';

interface About {
  id?: string;
  step?: number;
  hidden?: number;
  life?: number;
  text?: string;
}

const END = 10 ** 10;
const times = ({ step = 0, life = FOREVER }: About) => ({
  inserted: step * STEP_SECONDS,
  expires: life === FOREVER ? END : step * STEP_SECONDS + lifeSeconds(life),
});
const next = (step: number, hidden: number) => step * STEP_SECONDS + hiddenSeconds(hidden);

const put = (id: string, { hidden = 0, life = FOREVER }: About = {}): Request => ({
  kind: 'put',
  text: id,
  hidden,
  life,
});
const wasPut = (id: string, about: About = {}): Answer => {
  const nextVisible = next(about.step ?? 0, about.hidden ?? 0);
  return { messages: [{ id, receipt: `${id}0`, nextVisible, ...times(about) }] };
};
const get = (hidden = 1, count = 1): Request => ({ kind: 'get', count, hidden });
const peek: Request = { kind: 'peek', count: 1 };
/** Message, receipt, and how often it was handed out. The message was put in the step 0. */
const took = (
  id: string,
  receipt: string,
  dequeueCount: number,
  { step = 0, hidden = 1, text = id, life = FOREVER }: About = {},
): Answer => ({
  messages: [{ id, receipt, dequeueCount, text, nextVisible: next(step, hidden), ...times({ life }) }],
});
const saw = (id: string, dequeueCount: number, { text = id, life = FOREVER }: About = {}): Answer => ({
  messages: [{ id, dequeueCount, text, ...times({ life }) }],
});
const nothing: Answer = { messages: [] };
const remove = (id: string, receipt: string): Request => ({ kind: 'delete', held: { id, receipt } });
const update = (id: string, receipt: string, hidden: number, text?: string): Request => ({
  kind: 'update',
  hidden,
  text,
  held: { id, receipt },
});
const updated = (receipt: string, step: number, hidden: number): Answer => ({
  receipt,
  nextVisible: next(step, hidden),
});
const done: Answer = { done: true };
const missing: Answer = { refused: 'MessageNotFound' };
const exceeded: Answer = { refused: 'InvalidQueryParameterValue' };
const advance: Request = { kind: 'advance' };
const settled: Request = { kind: 'settled' };
const clear: Request = { kind: 'clear' };

/** The clients whose answer is impossible. */
const culprits = (operations: readonly Operation[]): number[] =>
  checkHistory(operations).map(({ failing }) => failing.client);
const putM: Line = [0, 1, put('m'), wasPut('m')];
const tookM: Line = [2, 3, get(), took('m', 'm1', 1)];

describe('The checker of queues refuses', () => {
  const wrong: [title: string, failing: number, lines: Line[]][] = [
    [
      'a message that two consumers have at once',
      2,
      [putM, [2, 4, get(), took('m', 'm1', 1)], [3, 5, get(), took('m', 'm2', 2)]],
    ],
    [
      'a message that two consumers have at once, both for the first time',
      2,
      [putM, [2, 4, get(), took('m', 'm1', 1)], [3, 5, get(), took('m', 'm2', 1)]],
    ],
    [
      'a message that comes back too early',
      3,
      [
        putM,
        [2, 3, get(2), took('m', 'm1', 1, { hidden: 2 })],
        [4, 5, advance, done],
        [6, 7, get(), took('m', 'm2', 2, { step: 1 })],
      ],
    ],
    [
      'a message that is seen too early',
      1,
      [
        [0, 1, put('m', { hidden: 1 }), wasPut('m', { hidden: 1 })],
        [2, 3, peek, saw('m', 0)],
      ],
    ],
    ['a lost message', 1, [putM, [2, 3, get(), nothing]]],
    ['a lost message, when somebody looks', 1, [putM, [2, 3, peek, nothing]]],
    ['a message that does not come back', 3, [putM, tookM, [4, 5, advance, done], [6, 7, get(), nothing]]],
    [
      'a message that is lost when all is settled, whatever had no answer',
      4,
      [putM, [2, 3, get(), 'no answer'], [4, 5, settled, done], [6, 7, advance, done], [8, 9, get(), nothing]],
    ],
    [
      'a lost message, whatever was asked and settled before it was put',
      3,
      [
        [0, 1, get(), 'no answer'],
        [2, 3, settled, done],
        [4, 5, put('m'), wasPut('m')],
        [6, 7, get(), nothing],
      ],
    ],
    [
      'nothing while one waits for certain, beside one that is taken',
      2,
      [putM, [0, 1, put('o'), wasPut('o')], [2, 3, get(), nothing], [2, 3, get(), took('o', 'o1', 1)]],
    ],
    ['a stale receipt that deletes', 2, [putM, tookM, [4, 5, remove('m', 'm0'), done]]],
    [
      'a stale receipt that updates',
      3,
      [
        putM,
        tookM,
        [4, 5, update('m', 'm1', 1), updated('m2', 0, 1)],
        [6, 7, update('m', 'm1', 1), updated('m3', 0, 1)],
      ],
    ],
    [
      'two who delete it by one receipt',
      3,
      [putM, tookM, [4, 6, remove('m', 'm1'), done], [5, 7, remove('m', 'm1'), done]],
    ],
    ['the newest receipt refused', 2, [putM, tookM, [4, 5, remove('m', 'm1'), missing]]],
    [
      'a receipt refused because its time is over',
      3,
      [putM, tookM, [4, 5, advance, done], [6, 7, remove('m', 'm1'), missing]],
    ],
    [
      'a deleted message that comes back',
      4,
      [
        putM,
        tookM,
        [4, 5, remove('m', 'm1'), done],
        [6, 7, advance, done],
        [8, 9, get(), took('m', 'm2', 2, { step: 1 })],
      ],
    ],
    [
      'a deleted message that is seen',
      4,
      [putM, tookM, [4, 5, remove('m', 'm1'), done], [6, 7, advance, done], [8, 9, peek, saw('m', 1)]],
    ],
    ['a message that was cleared', 2, [putM, [2, 3, clear, done], [4, 5, get(), took('m', 'm1', 1)]]],
    [
      'a dequeue count that is not raised',
      3,
      [putM, tookM, [4, 5, advance, done], [6, 7, get(), took('m', 'm2', 1, { step: 1 })]],
    ],
    ['a dequeue count that a look raises', 2, [putM, [2, 3, peek, saw('m', 0)], [4, 5, get(), took('m', 'm1', 2)]]],
    [
      'a dequeue count that an update raises',
      3,
      [putM, tookM, [4, 5, update('m', 'm1', 0), updated('m2', 0, 0)], [6, 7, get(), took('m', 'm3', 3)]],
    ],
    [
      'a text that was replaced',
      3,
      [putM, tookM, [4, 5, update('m', 'm1', 0, 'new'), updated('m2', 0, 0)], [6, 7, get(), took('m', 'm3', 2)]],
    ],
    [
      'an update that does not show it at once',
      3,
      [putM, tookM, [4, 5, update('m', 'm1', 0), updated('m2', 0, 0)], [6, 7, get(), nothing]],
    ],
    [
      'an update that shows it, to two',
      4,
      [
        putM,
        tookM,
        [4, 5, update('m', 'm1', 0), updated('m2', 0, 0)],
        [6, 8, get(), took('m', 'm3', 2)],
        [7, 9, get(), took('m', 'm4', 3)],
      ],
    ],
    [
      'a message that has expired',
      2,
      [
        [0, 1, put('m', { life: 1 }), wasPut('m', { life: 1 })],
        [2, 3, advance, done],
        [4, 5, get(), took('m', 'm1', 1, { step: 1, life: 1 })],
      ],
    ],
    [
      'an expired message that is deleted',
      3,
      [
        [0, 1, put('m', { life: 1 }), wasPut('m', { life: 1 })],
        [2, 3, get(), took('m', 'm1', 1, { life: 1 })],
        [4, 5, advance, done],
        [6, 7, remove('m', 'm1'), done],
      ],
    ],
    [
      'an update that hides it past its end',
      1,
      [
        [0, 1, put('m', { life: 2 }), wasPut('m', { life: 2 })],
        [2, 3, update('m', 'm0', 3), updated('m1', 0, 3)],
      ],
    ],
    [
      'an update that is refused though it ends in time',
      1,
      [
        [0, 1, put('m', { life: 2 }), wasPut('m', { life: 2 })],
        [2, 3, update('m', 'm0', 2), exceeded],
      ],
    ],
    ['a message that nobody put', 0, [[0, 1, get(), took('m', 'm1', 1)]]],
    [
      'one put that leaves two',
      2,
      [
        [0, 1, put('m'), 'no answer'],
        [2, 3, get(), took('m', 'm1', 1)],
        [4, 5, get(), took('o', 'o1', 1, { text: 'm' })],
      ],
    ],
    [
      'a receipt that is given twice',
      2,
      [putM, [2, 3, update('m', 'm0', 0), updated('m1', 0, 0)], [4, 5, get(), took('m', 'm1', 1)]],
    ],
    [
      'another time of insertion than was told',
      1,
      [
        putM,
        [
          2,
          3,
          get(),
          {
            messages: [
              {
                id: 'm',
                receipt: 'm1',
                dequeueCount: 1,
                text: 'm',
                inserted: 1,
                expires: END,
                nextVisible: next(0, 1),
              },
            ],
          },
        ],
      ],
    ],
    ['a time that does not move', 2, [putM, [2, 3, advance, done], [4, 5, put('o'), wasPut('o')]]],
    [
      'a time that goes back',
      2,
      [
        [0, 9, advance, done],
        [2, 3, put('m'), wasPut('m', { step: 1 })],
        [4, 5, put('o'), wasPut('o', { step: 0 })],
      ],
    ],
    [
      'one taken more often than anybody can have',
      2,
      [putM, [2, 3, get(), 'no answer'], [4, 5, get(), took('m', 'm3', 3)]],
    ],
  ];
  it.each(wrong)('%s', (_, failing, lines) => {
    const operations = told(...lines);
    expect(culprits(operations)).toEqual([failing]);
    expect(explain(checkHistory(operations)[0]!)).toContain(`client ${failing}`);
  });
});

describe('The checker of queues allows', () => {
  const right: [string, Line[]][] = [
    [
      'nothing before the put, and beside it',
      [
        [0, 1, get(), nothing],
        [2, 5, put('m'), wasPut('m')],
        [3, 4, get(), nothing],
      ],
    ],
    ['nothing while another has it', [putM, tookM, [4, 5, get(), nothing], [6, 7, peek, nothing]]],
    [
      'it to be taken before its put is answered',
      [
        [0, 9, put('m'), wasPut('m')],
        [2, 3, get(), took('m', 'm1', 1)],
      ],
    ],
    [
      'it to be taken again when its time is over',
      [putM, tookM, [4, 5, advance, done], [6, 7, get(), took('m', 'm2', 2, { step: 1 })]],
    ],
    [
      'it to be taken again while time moves',
      [putM, tookM, [4, 9, advance, done], [6, 7, get(), took('m', 'm2', 2, { step: 1 })]],
    ],
    ['it not to be there yet while time moves', [putM, tookM, [4, 9, advance, done], [6, 7, get(), nothing]]],
    ['a delete by the put, until somebody takes it', [putM, [2, 3, remove('m', 'm0'), done], [4, 5, get(), nothing]]],
    [
      'a delete when its time is over, until somebody takes it',
      [putM, tookM, [4, 5, advance, done], [6, 7, remove('m', 'm1'), done]],
    ],
    ['one of two who delete', [putM, tookM, [4, 6, remove('m', 'm1'), missing], [5, 7, remove('m', 'm1'), done]]],
    ['a delete that loses to a get', [putM, [2, 5, get(), took('m', 'm1', 1)], [3, 4, remove('m', 'm0'), missing]]],
    [
      'a get without an answer that took it',
      [
        putM,
        [2, 3, get(), 'no answer'],
        [4, 5, get(), nothing],
        [6, 7, advance, done],
        [8, 9, get(), took('m', 'm2', 2, { step: 1 })],
      ],
    ],
    [
      'a get without an answer that took it, though one before it was settled',
      [
        [0, 1, put('m'), wasPut('m')],
        [2, 3, get(), 'no answer'],
        [4, 5, settled, done],
        [6, 7, get(), 'no answer'],
        [8, 9, get(), nothing],
      ],
    ],
    ['a get without an answer that did not', [putM, [2, 3, get(), 'no answer'], [4, 5, get(), took('m', 'm1', 1)]]],
    [
      'a delete without an answer that comes late',
      [
        putM,
        tookM,
        [4, 5, remove('m', 'm1'), 'no answer'],
        [6, 7, update('m', 'm1', 0, 'n'), updated('m2', 0, 0)],
        [8, 9, get(), took('m', 'm3', 2, { text: 'n' })],
      ],
    ],
    [
      'a delete without an answer that did it',
      [
        putM,
        tookM,
        [4, 5, remove('m', 'm1'), 'no answer'],
        [6, 7, settled, done],
        [8, 9, advance, done],
        [10, 11, get(), nothing],
      ],
    ],
    [
      'a put without an answer that is seen, or never',
      [
        [0, 1, put('m'), 'no answer'],
        [0, 1, put('o'), 'no answer'],
        [2, 3, get(), took('m', 'm1', 1)],
        [4, 5, get(), nothing],
      ],
    ],
    [
      'an update without an answer whose text is seen',
      [
        putM,
        tookM,
        [4, 5, update('m', 'm1', 0, 'n'), 'no answer'],
        [6, 7, peek, saw('m', 1, { text: 'n' })],
        [8, 9, remove('m', 'm1'), missing],
      ],
    ],
    ['a clear beside puts', [putM, [2, 5, clear, done], [3, 4, put('o'), wasPut('o')], [6, 7, get(), nothing]]],
    ['a clear without an answer', [putM, [2, 5, clear, 'no answer'], [6, 7, get(), nothing]]],
    [
      'one that has expired not to be there',
      [
        [0, 1, put('m', { life: 1 }), wasPut('m', { life: 1 })],
        [2, 3, advance, done],
        [4, 5, get(), nothing],
        [6, 7, remove('m', 'm0'), missing],
      ],
    ],
    [
      'an update refused that hides it past its end',
      [
        [0, 1, put('m', { life: 2 }), wasPut('m', { life: 2 })],
        [2, 3, update('m', 'm0', 3), exceeded],
      ],
    ],
    [
      'time that moved though nobody was told',
      [
        [0, 1, advance, 'no answer'],
        [2, 3, put('m'), wasPut('m', { step: 0 })],
        [4, 5, put('o'), wasPut('o', { step: 1 })],
      ],
    ],
  ];
  it.each(right)('%s', (_, lines) => {
    expect(checkHistory(told(...lines)).map(explain)).toEqual([]);
  });
});

describe('The checker of queues, on histories that are valid by construction,', () => {
  it.each([
    ['without overlaps', { lengthMax: 200, spread: 0.4, unanswered: 0 }],
    ['with overlaps', { lengthMax: 200, spread: 8, unanswered: 0 }],
    ['with overlaps and operations without an answer', { lengthMax: 120, spread: 5, unanswered: 2 }],
  ])('allows all %s', (_, shape) => {
    const property = fc.property(history(shape), (operations) => {
      expect(checkHistory(operations).map(explain)).toEqual([]);
    });
    fc.assert(property, { numRuns: 50 });
  });

  it('finds one message with a wrong dequeue count', () => {
    spoil({ lengthMax: 100, spread: 8, unanswered: 0 }, (messages) => [
      { ...messages[0]!, dequeueCount: messages[0]!.dequeueCount! + 1 },
      ...messages.slice(1),
    ]);
  });

  it('finds one empty answer although a message was visible', () => {
    spoil({ lengthMax: 100, spread: 0.4, unanswered: 0 }, () => []);
  });

  it('finds one message with a text that was never put', () => {
    spoil({ lengthMax: 100, spread: 8, unanswered: 0 }, (messages) => [
      { ...messages[0]!, text: 'another' },
      ...messages.slice(1),
    ]);
  });

  /** Changes one answer to a get. */
  function spoil(shape: Shape, change: (messages: readonly Told[]) => readonly Told[]): void {
    const property = fc.property(history(shape), fc.nat(), (operations, which) => {
      const takes = operations.filter(
        (operation) => operation.request.kind === 'get' && messagesOf(operation).length > 0,
      );
      fc.pre(takes.length > 0);
      const chosen = takes[which % takes.length]!;
      const answer = { messages: change(messagesOf(chosen)) };
      const spoilt = { ...chosen, returned: { at: chosen.returned!.at, answer } };
      const wrong = checkHistory(operations.map((operation) => (operation === chosen ? spoilt : operation)));
      expect(wrong).not.toEqual([]);
    });
    fc.assert(property, { numRuns: 50 });
  }
});
