import { describe, expect, it } from 'vitest';
import { progressBar } from './progress-bar.ts';

describe('The progress bar', () => {
  const terminal = (isTTY: boolean) => {
    const written: string[] = [];
    return { written, isTTY, write: (text: string) => written.push(text) > 0 };
  };

  it('rewrites one line in place, and clears it', () => {
    const screen = terminal(true);
    const bar = progressBar(screen as never);
    bar.show({ what: 'counting rows', done: 1_000, total: undefined });
    bar.show({ what: 'reading bytes', done: 50, total: 100 });
    bar.show({ what: 'reading bytes', done: 50, total: 100 });
    bar.clear();
    const line = (text: string) => `\r\x1b[K${text}`;
    const half = `reading bytes [${'#'.repeat(15)}${'.'.repeat(15)}] 50 %`;
    expect(screen.written).toEqual([line('counting rows 1000'), line(half), line('')]);
  });

  it('writes nothing where there is no terminal', () => {
    const file = terminal(false);
    progressBar(file as never).show({ what: 'reading bytes', done: 0, total: 0 });
    expect(file.written).toEqual([]);
  });
});
