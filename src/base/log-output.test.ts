import { describe, expect, it } from 'vitest';
import { LogOutput } from './log-output.ts';

function newOutput() {
  const sink = { writes: [] as string[], writableLength: 0, write: (text: string) => sink.writes.push(text) };
  return { sink, output: new LogOutput(() => sink) };
}

describe('The output of the log', () => {
  it('writes gathered lines together, before the next line that is written at once', () => {
    const { sink, output } = newOutput();
    output.gather('one\n');
    output.gather('two\n');
    expect(sink.writes).toEqual([]);
    output.write('three\n');
    expect(sink.writes).toEqual(['one\ntwo\nthree\n']);
  });

  it('writes gathered lines soon, also if no other line comes', async () => {
    const { sink, output } = newOutput();
    output.gather('one\n');
    await expect.poll(() => sink.writes).toEqual(['one\n']);
  });

  it('makes one write of some hundred lines', () => {
    const { sink, output } = newOutput();
    for (let i = 0; i < 1_000; i++) output.gather(`${'x'.repeat(99)}\n`);
    output.flush();
    expect(sink.writes.length).toBeLessThan(10);
    expect(sink.writes.join('')).toHaveLength(100_000);
  });

  it('drops lines while the output is not read, and says how many once it is', () => {
    const { sink, output } = newOutput();
    sink.writableLength = 2 << 20;
    output.gather('one\n');
    output.write('two\n');
    expect(sink.writes).toEqual([]);
    sink.writableLength = 0;
    output.write('three\n');
    expect(sink.writes).toEqual(['2 lines of the log are missing here: the output was not read\nthree\n']);
  });

  it('goes on when a line cannot be written', () => {
    const failing = new LogOutput(() => {
      throw new Error('ENOSPC');
    });
    expect(() => failing.write('one\n')).not.toThrow();
  });
});
