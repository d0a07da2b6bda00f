import { describe, expect, it } from 'vitest';
import { anAnswered, MONDAY } from '../../../test/support/access-record.ts';
import { TICKS_PER_SECOND } from '../../base/time.ts';
import { createLogBuffer, type LogPage, type WriteOutcome } from './log-buffer.ts';

const HOUR = 3600n * TICKS_PER_SECOND;

async function writtenPages(buffer: ReturnType<typeof createLogBuffer>, outcome: WriteOutcome = 'written') {
  const pages: LogPage[] = [];
  await buffer.writeAll(async (page) => {
    pages.push(page);
    return outcome;
  });
  return pages;
}

describe('A log buffer', () => {
  it('has a page for each account, service, hour and format', async () => {
    const buffer = createLogBuffer();
    buffer.add(1n, anAnswered({ kind: 'read', started: MONDAY + 1n }), '1.0');
    buffer.add(1n, anAnswered({ kind: 'write' }), '1.0');
    buffer.add(2n, anAnswered({}), '1.0');
    buffer.add(1n, anAnswered({ service: 'queue' }), '1.0');
    buffer.add(1n, anAnswered({ started: MONDAY + HOUR }), '1.0');
    buffer.add(1n, anAnswered({}), '2.0');
    const pages = await writtenPages(buffer);
    expect(pages.map(({ account, folder, version, lines }) => [account, folder, version, lines.length])).toEqual([
      [1n, 'blob/2026/11/16/0900/', '1.0', 2],
      [2n, 'blob/2026/11/16/0900/', '1.0', 1],
      [1n, 'queue/2026/11/16/0900/', '1.0', 1],
      [1n, 'blob/2026/11/16/1000/', '1.0', 1],
      [1n, 'blob/2026/11/16/0900/', '2.0', 1],
    ]);
    expect(pages[0]).toMatchObject({ kinds: new Set(['read', 'write']), first: MONDAY, last: MONDAY + 1n });
    expect(await writtenPages(buffer)).toEqual([]);
  });

  it('holds at most linesMax lines, counts the others, and has room again once they are written', async () => {
    const buffer = createLogBuffer({ linesMax: 3 });
    for (let i = 0; i < 5; i++) buffer.add(1n, anAnswered({}), '1.0');
    expect(buffer.isHalfFull).toBe(true);
    expect([buffer.takeDropped(), buffer.takeDropped()]).toEqual([2, 0]);
    expect((await writtenPages(buffer))[0]!.lines).toHaveLength(3);
    expect(buffer.isHalfFull).toBe(false);
    for (let i = 0; i < 3; i++) buffer.add(1n, anAnswered({}), '1.0');
    expect(buffer.takeDropped()).toBe(0);
  });

  it('holds at most charactersMax characters', async () => {
    const buffer = createLogBuffer({ charactersMax: 1_000 });
    for (let i = 0; i < 50; i++) buffer.add(1n, anAnswered({ userAgent: 'x'.repeat(i * 50) }), '1.0');
    const [page] = await writtenPages(buffer);
    expect(page!.lines.join('').length).toBeLessThanOrEqual(1_000);
    expect(page!.lines.length + buffer.takeDropped()).toBe(50);
    // The buffer is empty again.
    buffer.add(1n, anAnswered({ userAgent: 'x'.repeat(600) }), '1.0');
    expect(buffer.takeDropped()).toBe(0);
  });

  it('keeps lines that could not be written before the newer ones, and counts them towards its limit', async () => {
    const buffer = createLogBuffer({ linesMax: 3 });
    buffer.add(1n, anAnswered({ id: 'one' }), '1.0');
    await buffer.writeAll(async () => {
      buffer.add(1n, anAnswered({ id: 'two', kind: 'delete' }), '1.0');
      return 'retry';
    });
    buffer.add(1n, anAnswered({ id: 'three' }), '1.0');
    buffer.add(1n, anAnswered({ id: 'four' }), '1.0');
    expect(buffer.takeDropped()).toBe(1);
    const pages = await writtenPages(buffer, 'refused');
    expect(pages.map(({ lines }) => lines.map((line) => /one|two|three/.exec(line)?.[0]))).toEqual([
      ['one', 'two', 'three'],
    ]);
    expect(pages[0]!.kinds).toEqual(new Set(['write', 'delete']));
    expect(await writtenPages(buffer)).toEqual([]);
  });
});
