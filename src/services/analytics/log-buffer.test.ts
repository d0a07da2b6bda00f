import { describe, expect, it } from 'vitest';
import { anAnswered, MONDAY } from '../../../test/support/access-record.ts';
import { TICKS_PER_SECOND } from '../../base/time.ts';
import { createLogBuffer, type LogPage } from './log-buffer.ts';

const HOUR = 3600n * TICKS_PER_SECOND;

async function pagesOf(book: ReturnType<typeof createLogBuffer>, outcome: 'written' | 'retry' | 'refused' = 'written') {
  const pages: LogPage[] = [];
  await book.writeAll(async (page) => {
    pages.push(page);
    return outcome;
  });
  return pages;
}

describe('A log book', () => {
  it('has a page for each account, service, hour and format', async () => {
    const book = createLogBuffer();
    book.add(1n, anAnswered({ kind: 'read', started: MONDAY + 1n }), '1.0');
    book.add(1n, anAnswered({ kind: 'write' }), '1.0');
    book.add(2n, anAnswered({}), '1.0');
    book.add(1n, anAnswered({ service: 'queue' }), '1.0');
    book.add(1n, anAnswered({ started: MONDAY + HOUR }), '1.0');
    book.add(1n, anAnswered({}), '2.0');
    const pages = await pagesOf(book);
    expect(pages.map(({ account, folder, version, lines }) => [account, folder, version, lines.length])).toEqual([
      [1n, 'blob/2026/11/16/0900/', '1.0', 2],
      [2n, 'blob/2026/11/16/0900/', '1.0', 1],
      [1n, 'queue/2026/11/16/0900/', '1.0', 1],
      [1n, 'blob/2026/11/16/1000/', '1.0', 1],
      [1n, 'blob/2026/11/16/0900/', '2.0', 1],
    ]);
    expect(pages[0]).toMatchObject({ kinds: new Set(['read', 'write']), first: MONDAY, last: MONDAY + 1n });
    expect(await pagesOf(book)).toEqual([]);
  });

  it('takes so many lines, counts the others, and has room again once they are written', async () => {
    const book = createLogBuffer({ linesMax: 3 });
    for (let i = 0; i < 5; i++) book.add(1n, anAnswered({}), '1.0');
    expect(book.isHalfFull).toBe(true);
    expect([book.takeDropped(), book.takeDropped()]).toEqual([2, 0]);
    expect((await pagesOf(book))[0]!.lines).toHaveLength(3);
    expect(book.isHalfFull).toBe(false);
    for (let i = 0; i < 3; i++) book.add(1n, anAnswered({}), '1.0');
    expect(book.takeDropped()).toBe(0);
  });

  it('takes so many characters, and no line that would be more', async () => {
    const book = createLogBuffer({ charactersMax: 1_000 });
    for (let i = 0; i < 50; i++) book.add(1n, anAnswered({ userAgent: 'x'.repeat(i * 50) }), '1.0');
    const [page] = await pagesOf(book);
    expect(page!.lines.join('').length).toBeLessThanOrEqual(1_000);
    expect(page!.lines.length + book.takeDropped()).toBe(50);
    // All of the room is there again.
    book.add(1n, anAnswered({ userAgent: 'x'.repeat(600) }), '1.0');
    expect(book.takeDropped()).toBe(0);
  });

  it('keeps what could not be written, in front of what came meanwhile, and counts it', async () => {
    const book = createLogBuffer({ linesMax: 3 });
    book.add(1n, anAnswered({ id: 'one' }), '1.0');
    await book.writeAll(async () => {
      book.add(1n, anAnswered({ id: 'two', kind: 'delete' }), '1.0');
      return 'retry';
    });
    book.add(1n, anAnswered({ id: 'three' }), '1.0');
    book.add(1n, anAnswered({ id: 'four' }), '1.0');
    expect(book.takeDropped()).toBe(1);
    const pages = await pagesOf(book, 'refused');
    expect(pages.map(({ lines }) => lines.map((line) => /one|two|three/.exec(line)?.[0]))).toEqual([
      ['one', 'two', 'three'],
    ]);
    expect(pages[0]!.kinds).toEqual(new Set(['write', 'delete']));
    expect(await pagesOf(book)).toEqual([]);
  });
});
