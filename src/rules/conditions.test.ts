import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Asked,
  type ConditionCell,
  containerCells,
  type DateWord,
  leaseLiftCells,
  operations,
  readCells,
  readTruthCells,
  readTruthRows,
  writeCells,
} from '../../test/truth-tables/conditions.ts';
import { type Conditions, hasOneCondition, judgeRead, judgeWrite, type Validators } from './conditions.ts';

const SECOND = 10_000_000n;
/** In the middle of a second, as versions are. */
const MODIFIED = 638_000_000_000_000_000n + 4_711_000n;
const found: Validators = { etag: 'current', modified: MODIFIED };

function conditionsOf(asked: Asked): Conditions {
  const { ifModifiedSince, ifUnmodifiedSince, ...etags } = asked;
  return {
    ...etags,
    ...(ifModifiedSince ? { ifModifiedSince: dateOf(ifModifiedSince) } : {}),
    ...(ifUnmodifiedSince ? { ifUnmodifiedSince: dateOf(ifUnmodifiedSince) } : {}),
  };
}

function dateOf(word: DateWord): bigint {
  const lastModified = MODIFIED - (MODIFIED % SECOND);
  return lastModified + { earlier: -60n, same: 0n, later: 60n }[word] * SECOND;
}

function verdictOf({ operation, exists, asked }: ConditionCell): string {
  const taken = Object.fromEntries(
    Object.entries(conditionsOf(asked)).filter(([name]) => (operation.takes as string[]).includes(name)),
  );
  if (operation.kind === 'write' && !hasOneCondition(taken)) return 'MultipleConditionHeadersNotSupported';
  if (!exists && !operation.creates) return 'missing';
  if (operation.kind === 'read') return judgeRead(found, taken);
  return judgeWrite(exists ? found : undefined, taken, { creates: operation.creates, leaseHeld: false });
}

describe('Conditions', () => {
  it('are known for every operation', () => {
    expect(operations).toHaveLength(22);
    expect(readTruthRows).toHaveLength(7);
    expect(readTruthCells).toHaveLength(243);
    expect(readCells).toHaveLength(84);
    expect(writeCells).toHaveLength(1020);
    expect(containerCells).toHaveLength(40);
    expect(leaseLiftCells).toHaveLength(7);
  });

  for (const cell of [...readTruthCells, ...readCells, ...writeCells, ...containerCells]) {
    it(`${cell.title}: ${cell.verdict}`, () => expect(verdictOf(cell)).toBe(cell.verdict));
  }

  it('let a write with If-None-Match:* pass that carries the id of the active lease', () => {
    const conditions: Conditions = { ifNoneMatch: '*' };
    expect(judgeWrite(found, conditions, { creates: true, leaseHeld: true })).toBe('proceed');
    expect(judgeWrite(found, { ifNoneMatch: ['current'] }, { creates: true, leaseHeld: true })).toBe('ConditionNotMet');
    expect(judgeWrite(found, conditions, { creates: false, leaseHeld: true })).toBe('ConditionNotMet');
  });

  it('compare dates by the second', () => {
    const second = MODIFIED - (MODIFIED % SECOND);
    for (const modified of [second, second + 1n, second + SECOND - 1n]) {
      expect(judgeRead({ etag: 'current', modified }, { ifModifiedSince: second })).toBe('NotModified');
      expect(judgeRead({ etag: 'current', modified }, { ifUnmodifiedSince: second })).toBe('proceed');
    }
    const next = { etag: 'current', modified: second + SECOND };
    expect(judgeRead(next, { ifModifiedSince: second })).toBe('proceed');
    expect(judgeRead(next, { ifUnmodifiedSince: second })).toBe('ConditionNotMet');
  });
});

/** Each header alone, in the words of the documentation; undefined is a header that was not sent. */
interface Alone {
  match: boolean | undefined;
  noneMatch: boolean | undefined;
  modified: boolean | undefined;
  unmodified: boolean | undefined;
}

function alone(etag: string, seconds: number, asked: Drawn): Alone {
  let match: boolean | undefined;
  let noneMatch: boolean | undefined;
  if (asked.match) match = asked.match === '*' || asked.match.filter((each) => each === etag).length > 0;
  if (asked.noneMatch) noneMatch = asked.noneMatch !== '*' && asked.noneMatch.every((each) => each !== etag);
  const modified = asked.modifiedSince === undefined ? undefined : seconds - asked.modifiedSince > 0;
  const unmodified = asked.unmodifiedSince === undefined ? undefined : asked.unmodifiedSince - seconds >= 0;
  return { match, noneMatch, modified, unmodified };
}

function naiveRead({ match, noneMatch, modified, unmodified }: Alone): string {
  if (match === false || unmodified === false) return 'ConditionNotMet';
  const either = [noneMatch, modified].filter((each) => each !== undefined);
  return either.length === 0 || either.includes(true) ? 'proceed' : 'NotModified';
}

/** What decides a write: the ETag condition if there is one, else the date; there is one of either at most. */
function naiveWrite(all: Alone): string {
  const decides = [all.match, all.noneMatch, all.modified, all.unmodified].find((each) => each !== undefined);
  return decides === false ? 'ConditionNotMet' : 'proceed';
}

interface Drawn {
  match: '*' | string[] | undefined;
  noneMatch: '*' | string[] | undefined;
  modifiedSince: number | undefined;
  unmodifiedSince: number | undefined;
}

const anEtag = fc.constantFrom('0x1', '0x2', '0x3');
const someEtags = fc.array(anEtag, { minLength: 1, maxLength: 3 });
const aSecond = fc.integer({ min: 0, max: 4 });
const drawn: fc.Arbitrary<Drawn> = fc.record({
  match: fc.option(fc.oneof(fc.constant('*' as const), someEtags), { nil: undefined }),
  noneMatch: fc.option(fc.oneof(fc.constant('*' as const), someEtags), { nil: undefined }),
  modifiedSince: fc.option(aSecond, { nil: undefined }),
  unmodifiedSince: fc.option(aSecond, { nil: undefined }),
});
const aTick = fc.integer({ min: 0, max: 9_999_999 });

function drawnConditions({ match, noneMatch, modifiedSince, unmodifiedSince }: Drawn): Conditions {
  return {
    ifMatch: match,
    ifNoneMatch: noneMatch,
    ifModifiedSince: modifiedSince === undefined ? undefined : BigInt(modifiedSince) * SECOND,
    ifUnmodifiedSince: unmodifiedSince === undefined ? undefined : BigInt(unmodifiedSince) * SECOND,
  };
}

describe('Any conditions', () => {
  it('are judged on a read as a naive evaluator does', () => {
    fc.assert(
      fc.property(anEtag, aSecond, aTick, drawn, (etag, seconds, ticks, asked) => {
        const verdict = judgeRead({ etag, modified: BigInt(seconds) * SECOND + BigInt(ticks) }, drawnConditions(asked));
        const expected = asked.noneMatch === '*' ? 'UnsatisfiableCondition' : naiveRead(alone(etag, seconds, asked));
        expect(verdict).toBe(expected);
      }),
      { numRuns: 2000 },
    );
  });

  it('are judged on a write as a naive evaluator does', () => {
    fc.assert(
      fc.property(anEtag, aSecond, aTick, drawn, fc.boolean(), (etag, seconds, ticks, asked, creates) => {
        const conditions = drawnConditions(asked);
        fc.pre(hasOneCondition(conditions));
        const there = { etag, modified: BigInt(seconds) * SECOND + BigInt(ticks) };
        const verdict = judgeWrite(there, conditions, { creates, leaseHeld: false });
        if (asked.noneMatch === '*') expect(verdict).toBe(creates ? 'BlobAlreadyExists' : 'ConditionNotMet');
        else expect(verdict).toBe(naiveWrite(alone(etag, seconds, asked)));
      }),
      { numRuns: 2000 },
    );
  });

  it('are one condition exactly when they are none, one, or an ETag with its date', () => {
    fc.assert(
      fc.property(drawn, (asked) => {
        const sent = [
          asked.match && 'match',
          asked.unmodifiedSince !== undefined && 'unmodified',
          asked.noneMatch && 'none match',
          asked.modifiedSince !== undefined && 'modified',
        ].filter(Boolean);
        const allowed = ['match,unmodified', 'none match,modified'];
        const lists = [asked.match, asked.noneMatch].some((each) => Array.isArray(each) && each.length > 1);
        const legal = !lists && (sent.length < 2 || allowed.includes(sent.join(',')));
        expect(hasOneCondition(drawnConditions(asked))).toBe(legal);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('A condition on tags', () => {
  const ifTags = [[{ key: 'a', operator: '=', value: '1' }]] as const;
  const tagged = (value: string): Validators => ({ ...found, tags: [['a', value]] });
  const kind = { creates: true, leaseHeld: false };

  it('must be met beside the others', () => {
    expect(judgeRead(tagged('1'), { ifTags })).toBe('proceed');
    expect(judgeRead(tagged('2'), { ifTags })).toBe('ConditionNotMet');
    expect(judgeRead(tagged('1'), { ifTags, ifNoneMatch: ['current'] })).toBe('NotModified');
    expect(judgeWrite(tagged('1'), { ifTags, ifMatch: ['current'] }, kind)).toBe('proceed');
    expect(judgeWrite(tagged('1'), { ifTags, ifMatch: ['other'] }, kind)).toBe('ConditionNotMet');
    expect(judgeWrite(tagged('2'), { ifTags, ifMatch: ['current'] }, kind)).toBe('ConditionNotMet');
    expect(judgeWrite(tagged('2'), { ifTags, ifNoneMatch: '*' }, kind)).toBe('ConditionNotMet');
  });

  it('is met by no blob that does not exist', () => {
    expect(judgeWrite(undefined, { ifTags }, kind)).toBe('ConditionNotMet');
  });

  it('may stand beside one other condition', () => {
    expect(hasOneCondition({ ifTags, ifMatch: ['current'] })).toBe(true);
  });
});
