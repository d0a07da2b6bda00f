import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { APPENDS_MAX, judgeAppend, judgeSeal } from './append.ts';

const blob = { length: 100, blocks: 3 };

describe('An append', () => {
  it.each([
    ['no condition', blob, {}, 'proceed'],
    ['the position of the end', blob, { position: 100 }, 'proceed'],
    ['a position before the end', blob, { position: 99 }, 'AppendPositionConditionNotMet'],
    ['a position after the end', blob, { position: 101 }, 'AppendPositionConditionNotMet'],
    ['position 0 of an empty blob', { length: 0, blocks: 0 }, { position: 0 }, 'proceed'],
    ['a size that is reached exactly', blob, { lengthMax: 110 }, 'proceed'],
    ['a size that would be exceeded', blob, { lengthMax: 109 }, 'MaxBlobSizeConditionNotMet'],
    ['a size that the blob exceeds already', blob, { lengthMax: 5 }, 'MaxBlobSizeConditionNotMet'],
    ['both, and neither holds', blob, { position: 0, lengthMax: 0 }, 'AppendPositionConditionNotMet'],
    ['a sealed blob', { ...blob, isSealed: true }, { position: 0 }, 'BlobIsSealed'],
    ['the last block', { ...blob, blocks: APPENDS_MAX - 1 }, {}, 'proceed'],
    ['one block too many', { ...blob, blocks: APPENDS_MAX }, {}, 'BlockCountExceedsLimit'],
    [
      'one block too many, with a condition',
      { ...blob, blocks: APPENDS_MAX },
      { position: 1 },
      'AppendPositionConditionNotMet',
    ],
  ])('with %s', (_, found, conditions, verdict) => {
    expect(judgeAppend(found, 10, conditions)).toBe(verdict);
  });

  it('with the position of the end leaves a blob that refuses the same position', () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 1e9 }), (length, appended) => {
        const conditions = { position: length };
        expect(judgeAppend({ length, blocks: 0 }, appended, conditions)).toBe('proceed');
        const after = { length: length + appended, blocks: 1 };
        expect(judgeAppend(after, appended, conditions)).toBe('AppendPositionConditionNotMet');
      }),
    );
  });
});

describe('A seal', () => {
  it('checks the position', () => {
    expect(judgeSeal(blob, {})).toBe('proceed');
    expect(judgeSeal(blob, { position: 100 })).toBe('proceed');
    expect(judgeSeal(blob, { position: 1 })).toBe('AppendPositionConditionNotMet');
  });
});
