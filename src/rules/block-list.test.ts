import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { blockIdBytes, judgeBlock, listsToSearch, parseBlockId, UNCOMMITTED_BLOCKS_MAX } from './block-list.ts';

describe('A block id', () => {
  it('is base64 of 1 to 64 bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 64 }), (bytes) => {
        const text = Buffer.from(bytes).toString('base64');
        expect(parseBlockId(text)).toBe(text);
        expect(blockIdBytes(text)).toBe(bytes.length);
      }),
    );
    expect(parseBlockId(Buffer.alloc(65).toString('base64'))).toBeUndefined();
  });

  it.each([
    '',
    '=',
    'A',
    'AA',
    'AAA',
    'AAA==',
    'AA=',
    'AAAA=',
    'AA-_',
    'AA A',
    ' AAAA',
    'AAAA\n',
    'A'.repeat(8_000_000),
  ])('is not %.20j', (text) => {
    expect(parseBlockId(text)).toBeUndefined();
  });

  it('is known by its bytes: bits to spare in the last character do not count', () => {
    expect(parseBlockId('MR==')).toBe('MQ==');
  });
});

describe('Another uncommitted block', () => {
  const staged = { idLength: 1, count: 3 };

  it('may have any id if it is the first', () => {
    expect(judgeBlock(undefined, 'MDAwMDE=', false)).toBe('proceed');
  });

  it('must have an id as long as the others, in bytes', () => {
    expect(judgeBlock(staged, 'MQ==', false)).toBe('proceed');
    expect(judgeBlock(staged, 'MTA=', false)).toBe('InvalidBlobOrBlock');
    expect(judgeBlock(staged, 'MTA=', true)).toBe('InvalidBlobOrBlock');
  });

  it('is refused where there are 100,000, unless it replaces one', () => {
    const full = { idLength: 1, count: UNCOMMITTED_BLOCKS_MAX };
    expect(judgeBlock({ ...full, count: full.count - 1 }, 'MQ==', false)).toBe('proceed');
    expect(judgeBlock(full, 'MQ==', false)).toBe('BlockCountExceedsLimit');
    expect(judgeBlock(full, 'MQ==', true)).toBe('proceed');
  });
});

describe('A block list', () => {
  it('takes a block from the list that it names, and the latest from the uncommitted one first', () => {
    expect(listsToSearch('Committed')).toEqual(['committed']);
    expect(listsToSearch('Uncommitted')).toEqual(['uncommitted']);
    expect(listsToSearch('Latest')).toEqual(['uncommitted', 'committed']);
  });
});
