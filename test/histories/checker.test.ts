import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkHistory } from './checker.ts';
import { explain } from './explain.ts';
import { type Answer, INFINITE, type Operation, type Request } from './history.ts';
import { isInPlaceRequest } from './in-place-model.ts';
import { type BlobShape, hasOrder, history } from './random-histories.ts';

const POLICIES: readonly Pick<BlobShape, 'softDelete' | 'type'>[] = [
  { softDelete: false },
  { softDelete: true },
  ...(['append', 'page'] as const).flatMap((type) => [false, true].map((softDelete) => ({ type, softDelete }))),
];

type Told = Answer | 'no answer';

/** One operation a line: call, return, request, and answer. */
function told(...lines: [called: number, returned: number, request: Request, answer: Told][]): Operation[] {
  return lines.map(([called, at, request, answer], client) => ({
    ...{ blob: 'blob', client, request, called },
    ...(answer === 'no answer' ? {} : { returned: { at, answer } }),
  }));
}

const put = (content: string, more: Partial<Extract<Request, { kind: 'put' }>> = {}): Request => {
  return { kind: 'put', content, ...more };
};
const get: Request = { kind: 'get' };
const remove: Request = { kind: 'delete' };
const removeAll: Request = { kind: 'delete', snapshots: 'include' };
const removeSnapshots: Request = { kind: 'delete', snapshots: 'only' };
const removeOne = (snapshot: string): Request => ({ kind: 'delete snapshot', snapshot });
const take: Request = { kind: 'snapshot' };
const undelete: Request = { kind: 'undelete' };
const getSnapshot = (snapshot: string): Request => ({ kind: 'get', snapshot });
const acquire = (leaseId: string): Request => ({ kind: 'acquire', leaseId, seconds: INFINITE });
const timed = (leaseId: string): Request => ({ kind: 'acquire', leaseId, seconds: 60 });
const saw = (content: string, lease = 'available'): Answer => ({ content, etag: content, lease });
const sawSnapshot = (content: string): Answer => ({ content, etag: content });
const took = (snapshot: string, etag: string): Answer => ({ etag, snapshot });
const wrote = (etag: string): Answer => ({ etag });
const refused = (code: string): Answer => ({ refused: code });
const done: Answer = {};

/** The client whose answer is impossible; clients are numbered by their lines. */
function culprits(operations: readonly Operation[]): number[] {
  return checkHistory(operations).map(({ failing }) => failing.client);
}

describe('The checker refuses', () => {
  const wrong: [string, Operation[]][] = [
    ['a stale read', told([0, 1, put('a'), wrote('a')], [2, 3, put('b'), wrote('b')], [4, 5, get, saw('a')])],
    [
      'a read before any write',
      told([0, 1, get, refused('BlobNotFound')], [0, 1, put('a'), wrote('a')], [2, 3, get, refused('BlobNotFound')]),
    ],
    ['a content that nobody wrote', told([0, 1, put('a'), wrote('a')], [2, 3, get, saw('b')])],
    [
      'a lost update: two writes on one ETag',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 5, put('b', { ifMatch: 'a' }), wrote('b')],
        [3, 6, put('c', { ifMatch: 'a' }), wrote('c')],
      ),
    ],
    [
      'two winners of If-None-Match: *',
      told([0, 3, put('a', { ifNoneMatch: '*' }), wrote('a')], [1, 4, put('b', { ifNoneMatch: '*' }), wrote('b')]),
    ],
    [
      'a write without its id through a lease',
      told([0, 1, put('a'), wrote('a')], [2, 3, acquire('L'), wrote('a')], [4, 5, put('b'), wrote('b')]),
    ],
    [
      'a write with an id that was changed',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 3, acquire('L'), wrote('a')],
        [4, 5, { kind: 'change', leaseId: 'L', newId: 'M' }, wrote('a')],
        [6, 7, put('b', { leaseId: 'L' }), wrote('b')],
      ),
    ],
    [
      'two holders of a lease',
      told([0, 1, put('a'), wrote('a')], [2, 5, acquire('L'), wrote('a')], [3, 6, acquire('M'), wrote('a')]),
    ],
    [
      'a write with a lease that has ended',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 3, timed('L'), wrote('a')],
        [4, 5, { kind: 'advance' }, done],
        [6, 7, put('b', { leaseId: 'L' }), wrote('b')],
      ),
    ],
    [
      'a lease that ended before its time',
      told([0, 1, put('a'), wrote('a')], [2, 3, timed('L'), wrote('a')], [50_000, 50_001, put('b'), wrote('b')]),
    ],
    [
      'a read that goes back, of two during one write',
      told([0, 1, put('a'), wrote('a')], [2, 9, put('b'), wrote('b')], [3, 4, get, saw('b')], [5, 6, get, saw('a')]),
    ],
    [
      'a write without an answer that appears twice',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 3, put('b'), 'no answer'],
        [4, 5, get, saw('b')],
        [6, 7, put('c'), wrote('c')],
        [8, 9, get, saw('b')],
      ),
    ],
    [
      'a write without an answer that appears before it was sent',
      told([0, 1, put('a'), wrote('a')], [2, 3, get, saw('b')], [4, 5, put('b'), 'no answer']),
    ],
    [
      'a condition without an answer that was not met',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 3, put('b'), wrote('b')],
        [4, 5, put('c', { ifMatch: 'a' }), 'no answer'],
        [6, 7, get, saw('c')],
      ),
    ],
    [
      'a refusal without a reason',
      told([0, 1, put('a'), wrote('a')], [2, 3, put('b', { ifMatch: 'a' }), refused('ConditionNotMet')]),
    ],
    [
      'a refusal for a lease that nobody has',
      told([0, 1, put('a'), wrote('a')], [2, 3, put('b'), refused('LeaseIdMissing')]),
    ],
    [
      'a refusal with the code of another',
      told([0, 1, put('a'), wrote('a')], [2, 3, put('b', { ifNoneMatch: '*' }), refused('ConditionNotMet')]),
    ],
    ['a deletion that did not happen', told([0, 1, put('a'), wrote('a')], [2, 3, remove, done], [4, 5, get, saw('a')])],
    ['the ETag of another write', told([0, 1, put('a'), wrote('a')], [2, 3, put('b'), wrote('a')])],
    [
      'a read with the bytes of one write and the ETag of another',
      told([0, 1, put('a'), wrote('a')], [2, 3, put('b'), wrote('b')], [4, 5, get, { ...saw('b'), etag: 'a' }]),
    ],
  ];
  for (const [title, operations] of wrong) {
    it(title, () => expect(checkHistory(operations)).toHaveLength(1));
  }

  const wrongOfSnapshots: [string, Operation[]][] = [
    [
      'a snapshot that changes with its blob',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 3, take, took('s', 'a')],
        [4, 5, put('b'), wrote('b')],
        [6, 7, getSnapshot('s'), sawSnapshot('b')],
      ),
    ],
    [
      'a snapshot of what was overwritten before',
      told([0, 1, put('a'), wrote('a')], [2, 3, put('b'), wrote('b')], [4, 5, take, took('s', 'a')]),
    ],
    [
      'a snapshot that an overwrite loses',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 3, take, took('s', 'a')],
        [4, 5, put('b'), wrote('b')],
        [6, 7, getSnapshot('s'), refused('BlobNotFound')],
      ),
    ],
    [
      'a deletion of a blob alone that has a snapshot',
      told([0, 1, put('a'), wrote('a')], [2, 3, take, took('s', 'a')], [4, 5, remove, done]),
    ],
    [
      'a refusal for snapshots that were deleted',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 3, take, took('s', 'a')],
        [4, 5, removeSnapshots, done],
        [6, 7, remove, refused('SnapshotsPresent')],
      ),
    ],
    [
      'a snapshot that outlives a deletion with its blob, though it was taken before',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 5, take, took('s', 'a')],
        [3, 6, removeAll, done],
        [7, 8, getSnapshot('s'), sawSnapshot('a')],
      ),
    ],
  ];
  for (const [title, operations] of wrongOfSnapshots) {
    it.each([false, true])(`${title}, with soft delete: %s`, (softDelete) => {
      expect(checkHistory(operations, { softDelete })).toHaveLength(1);
    });
  }

  const wrongOfUndelete: [string, Operation[]][] = [
    [
      'a blob that is not there after Undelete Blob',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 3, remove, done],
        [4, 5, undelete, done],
        [6, 7, get, refused('BlobNotFound')],
      ),
    ],
    [
      'an Undelete Blob that forgets a snapshot',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 3, take, took('s', 'a')],
        [4, 5, removeAll, done],
        [6, 7, undelete, done],
        [8, 9, getSnapshot('s'), refused('BlobNotFound')],
      ),
    ],
    [
      'an Undelete Blob that forgets the replaced state',
      told([0, 1, put('a'), wrote('a')], [2, 3, put('b'), wrote('b')], [4, 5, undelete, done], [6, 7, remove, done]),
    ],
    [
      'a restored blob that replaces the one which was written over it',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 3, remove, done],
        [4, 5, put('b'), wrote('b')],
        [6, 7, undelete, done],
        [8, 9, get, saw('a')],
      ),
    ],
    [
      'a condition that a deleted blob meets',
      told([0, 1, put('a'), wrote('a')], [2, 3, remove, done], [4, 5, put('b', { ifMatch: 'a' }), wrote('b')]),
    ],
    [
      'a blob that is restored with its lease',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 3, acquire('L'), wrote('a')],
        [4, 5, { kind: 'delete', leaseId: 'L' }, done],
        [6, 7, undelete, done],
        [8, 9, get, saw('a', 'leased')],
      ),
    ],
    ['a restored blob that was never there', told([0, 1, undelete, done])],
  ];
  for (const [title, operations] of wrongOfUndelete) {
    it(title, () => expect(checkHistory(operations, { softDelete: true })).toHaveLength(1));
  }

  it('a restored blob where nothing is kept', () => {
    const operations = told([0, 1, put('a'), wrote('a')], [2, 3, remove, done], [4, 5, undelete, done]);
    expect(checkHistory(operations)).toHaveLength(1);
  });
});

describe('The checker accepts', () => {
  const right: [string, Operation[]][] = [
    [
      'a read of either value during a write',
      told([0, 1, put('a'), wrote('a')], [2, 9, put('b'), wrote('b')], [3, 4, get, saw('a')], [5, 6, get, saw('b')]),
    ],
    [
      'a write without an answer that happens much later',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 3, put('b'), 'no answer'],
        [4, 5, put('c'), wrote('c')],
        [6, 7, get, saw('c')],
        [8, 9, get, saw('b')],
      ),
    ],
    [
      'a refusal that a write without an answer explains, although nobody saw it',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 3, put('b'), 'no answer'],
        [4, 5, put('c', { ifMatch: 'a' }), refused('ConditionNotMet')],
        [6, 7, acquire('L'), wrote('z')],
        [8, 9, put('d', { leaseId: 'L' }), wrote('d')],
      ),
    ],
    [
      'a lease that was asked for before time was moved, although the blob became what it was afterwards',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 9, timed('L'), wrote('a')],
        [3, 4, { kind: 'advance' }, done],
        [5, 6, get, saw('a')],
        [10, 11, put('b'), wrote('b')],
      ),
    ],
    [
      'a lease that ended by itself, and one that did not yet',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 3, timed('L'), wrote('a')],
        [60_000, 60_001, put('b', { leaseId: 'L' }), wrote('b')],
        [60_002, 60_003, put('c'), wrote('c')],
      ),
    ],
  ];
  for (const [title, operations] of right) {
    it(title, () => expect(checkHistory(operations).map(explain)).toEqual([]));
  }

  const rightWithSoftDelete: [string, Operation[]][] = [
    [
      'a content that was deleted, and is read again after Undelete Blob',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 3, get, saw('a')],
        [4, 5, remove, done],
        [6, 7, get, refused('BlobNotFound')],
        [8, 9, undelete, done],
        [10, 11, get, saw('a')],
        [12, 13, put('b', { ifMatch: 'a' }), wrote('b')],
      ),
    ],
    [
      'a snapshot that is deleted, restored, and deleted with all others',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 3, take, took('s', 'a')],
        [4, 5, removeOne('s'), done],
        [6, 7, getSnapshot('s'), refused('BlobNotFound')],
        [8, 9, undelete, done],
        [10, 11, getSnapshot('s'), sawSnapshot('a')],
        [12, 13, removeSnapshots, done],
        [14, 15, removeSnapshots, refused('BlobNotFound')],
        [16, 17, getSnapshot('s'), refused('BlobNotFound')],
        [18, 19, get, saw('a')],
      ),
    ],
    [
      'snapshots that only one without an answer explains',
      told([0, 1, put('a'), wrote('a')], [2, 3, take, 'no answer'], [4, 5, remove, refused('SnapshotsPresent')]),
    ],
    [
      'a snapshot of either content, taken during a write',
      told(
        [0, 1, put('a'), wrote('a')],
        [2, 9, put('b'), wrote('b')],
        [3, 4, take, took('s', 'a')],
        [5, 6, take, took('t', 'b')],
        [10, 11, getSnapshot('s'), sawSnapshot('a')],
        [12, 13, getSnapshot('t'), sawSnapshot('b')],
      ),
    ],
  ];
  for (const [title, operations] of rightWithSoftDelete) {
    it(title, () => expect(checkHistory(operations, { softDelete: true }).map(explain)).toEqual([]));
  }

  it.each(POLICIES)(
    'sequential operations, recorded as if they had overlapped, with answers lost ($type $softDelete)',
    ({ softDelete, type }) => {
      // More unanswered changes of cells at once leave more orders than can be tried.
      const shape = { lengthMax: type ? 100 : 150, spread: type ? 4 : 6, unanswered: 1, softDelete, type };
      fc.assert(
        fc.property(history(shape), (operations) => {
          expect(checkHistory(operations, { softDelete }).map(explain)).toEqual([]);
        }),
        { numRuns: 300 },
      );
    },
  );
});

describe('The checker', () => {
  it.each(POLICIES)(
    'agrees with a brute-force search on small histories, also when one answer is falsified ($type $softDelete)',
    ({ softDelete, type }) => {
      const seen = { right: 0, wrong: 0 };
      const shape = { lengthMax: 7, spread: 3, unanswered: 2, softDelete, type };
      fc.assert(
        fc.property(history(shape), fc.nat(), fc.nat(), (operations, one, other) => {
          const changed = withWrongAnswer(operations, one, other);
          for (const each of [operations, changed]) {
            if (tellsOfUnseen(each)) continue;
            const isRight = hasOrder(each, softDelete);
            expect(checkHistory(each, { softDelete }).length === 0).toBe(isRight);
            seen[isRight ? 'right' : 'wrong']++;
          }
        }),
        { numRuns: 2_000 },
      );

      expect(seen.wrong).toBeGreaterThan(100);
    },
  );

  it('finds one read of an overwritten content in a long history', () => {
    const shape = { lengthMax: 200, spread: 6, unanswered: 1, softDelete: true };
    let found = 0;
    fc.assert(
      fc.property(history(shape), fc.nat(), (operations, which) => {
        const planted = withStaleRead(operations, which);
        if (!planted) return;
        expect(checkHistory(planted, { softDelete: true })).toHaveLength(1);
        found++;
      }),
      { numRuns: 200 },
    );
    expect(found).toBeGreaterThan(30);
  });

  it('names the first answer that fits nowhere, and the possible states of the blob', () => {
    const operations = told(
      [0, 1, put('a'), wrote('a')],
      [2, 3, put('b'), wrote('b')],
      [4, 5, get, saw('b')],
      [6, 7, get, saw('a')],
      [8, 9, get, saw('a')],
      [8, 10, put('c'), wrote('c')],
    );
    expect(culprits(operations)).toEqual([3]);
    const [violation] = checkHistory(operations);
    expect(violation!.prefix).toHaveLength(4);
    expect(explain(violation!).split('\n')).toEqual([
      'blob: no order of the operations explains this answer:',
      '  6.00 .. 7.00  client 3: get -> content a, etag a, lease available',
      'before it the blob was',
      '  b, etag b, no lease',
      'the history until then, 4 operations by the time of their calls:',
      '  0.00 .. 1.00  client 0: put content a -> etag a',
      '  2.00 .. 3.00  client 1: put content b -> etag b',
      '  4.00 .. 5.00  client 2: get -> content b, etag b, lease available',
      '  6.00 .. 7.00  client 3: get -> content a, etag a, lease available',
    ]);
  });

  it('checks each blob by itself', () => {
    const one = told([0, 1, put('a'), wrote('a')], [2, 3, get, saw('a')]);
    const other = told([0, 1, put('b'), wrote('b')], [2, 3, get, refused('BlobNotFound')]);
    const both = [...one, ...other.map((operation) => ({ ...operation, blob: 'other' }))];
    expect(checkHistory(both).map(({ blob }) => blob)).toEqual(['other']);
  });

  it('gives up rather than run for ever', () => {
    const blind = Array.from({ length: 16 }, (_, i): [number, number, Request, Answer] => [
      0,
      10 + i,
      put(`w${i}`),
      wrote(`w${i}`),
    ]);
    const operations = told(...blind, [30, 31, get, saw('nothing')]);
    expect(() => checkHistory(operations, { nodesMax: 1_000 })).toThrow('undecided after');
  });
});

/** There the checker is lenient: an ETag that it cannot place may be that of any write that no read has seen. */
function tellsOfUnseen(operations: readonly Operation[]): boolean {
  const told = operations.map(({ request, returned }) => ({
    kind: request.kind,
    etag: returned && 'etag' in returned.answer ? returned.answer.etag : undefined,
  }));
  const isInPlace = operations.some(({ request }) => 'type' in request && request.type !== undefined);
  const isPlaced = ({ kind }: (typeof told)[number]) =>
    kind === 'put' || (isInPlace ? isInPlaceRequest({ kind }) && kind !== 'seal' : kind === 'get');
  const placed = new Set(told.filter(isPlaced).map(({ etag }) => etag));
  const named = operations.map(({ request }) => ('ifMatch' in request ? request.ifMatch : undefined));
  return [...told.map(({ etag }) => etag), ...named].some((etag) => etag !== undefined && !placed.has(etag));
}

/** An operation gets the answer of another of its kind, or a put or a snapshot that was done is refused, or the other way round. */
function withWrongAnswer(operations: readonly Operation[], one: number, other: number): Operation[] {
  const answered = operations.filter(({ returned }) => returned);
  const target = answered[one % answered.length];
  if (!target) return [];
  const { request, client } = target;
  const { at, answer } = target.returned!;
  const same = answered.filter(({ request: { kind } }) => kind === request.kind);
  const isNew = request.kind === 'put' || request.kind === 'snapshot';
  const etag = request.kind === 'put' ? `e${client}` : `e${other % operations.length}`;
  const madeUp = request.kind === 'put' ? wrote(etag) : took(`s${client}`, etag);
  const flipped = 'refused' in answer ? madeUp : refused('ConditionNotMet');
  const another = same[other % same.length]!.returned!.answer;
  const ofWrite = 'etag' in another ? { ...another, etag: `e${client}` } : another;
  const wrong = isNew ? flipped : isInPlaceRequest(request) ? ofWrite : another;
  return operations.with(operations.indexOf(target), { ...target, returned: { at, answer: wrong } });
}

/** A stale read: after a put whose successor was acknowledged, too, it reads the former. */
function withStaleRead(operations: readonly Operation[], which: number): Operation[] | undefined {
  const puts = operations.filter(
    ({ request, returned }) => request.kind === 'put' && returned && 'etag' in returned.answer,
  );
  const pairs = puts.flatMap((former) => {
    const later = puts.find(({ called }) => called > former.returned!.at);
    return later ? [{ former, later }] : [];
  });
  const pair = pairs[which % pairs.length];
  if (!pair) return undefined;
  const { request, returned } = pair.former;
  const content = request.kind === 'put' ? request.content : '';
  const etag = 'etag' in returned!.answer ? returned!.answer.etag : '';
  const { at } = pair.later.returned!;
  const read = { content, etag, lease: 'available' };
  return [
    ...operations,
    { blob: 'blob', client: 999, request: get, called: at + 0.1, returned: { at: at + 0.2, answer: read } },
  ];
}
