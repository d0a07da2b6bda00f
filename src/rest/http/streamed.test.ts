import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type BufferedStream, prepend, type StreamedDocument, streamAsProduced } from './streamed.ts';

const bytes = (text: string) => Buffer.from(text);

async function joined(pieces: StreamedDocument): Promise<string> {
  let text = '';
  for await (const piece of pieces) text += Buffer.from(piece).toString();
  return text;
}

describe('Pieces of a document', () => {
  it('are there at once if they are few', async () => {
    const pieces = await streamAsProduced(async (give) => give(bytes('all')));
    expect(pieces).toEqual([bytes('all')]);
    expect(await joined(prepend(bytes('first, '), pieces))).toBe('first, all');
  });

  it('can be taken while the rest is made', async () => {
    let finish = () => {};
    const pieces = await streamAsProduced(async (give) => {
      give(bytes('a'));
      give(bytes('b'));
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      give(bytes('c'));
    });
    const taken = (prepend(bytes('>'), pieces) as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    for (const text of ['>', 'a', 'b']) expect((await taken.next()).value).toEqual(bytes(text));
    const last = taken.next();
    finish();
    expect((await last).value).toEqual(bytes('c'));
    expect((await taken.next()).done).toBe(true);
  });

  it('are all made though nobody takes them', async () => {
    let made = 0;
    await streamAsProduced(async (give) => {
      for (; made < 20; made++) {
        give(bytes('x'));
        await turn();
      }
    });
    for (let turns = 0; turns < 30; turns++) await turn();
    expect(made).toBe(20);
  });

  it('tell how many bytes lie there, and whether there will be more', async () => {
    let finish = () => {};
    const made = await streamAsProduced(async (give) => {
      for (const text of ['aaaa', 'bb']) give(bytes(text));
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      give(bytes('c'));
    });
    const pieces = prepend(bytes('>'), made) as BufferedStream;
    const heard: [number, boolean][] = [];
    pieces.onProduced!(() => heard.push([pieces.bufferedBytes(), pieces.isProducing!()]));
    expect(pieces.bufferedBytes()).toBe(6);
    for (const left of [6, 2]) {
      await pieces.next();
      expect(pieces.bufferedBytes()).toBe(left);
    }
    finish();
    await turn();
    expect(heard).toEqual([
      [3, true],
      [3, false],
    ]);
  });

  it('fail where what makes them does: at once, or behind those that were made', async () => {
    const fails = streamAsProduced(async () => {
      throw new Error('at once');
    });
    await expect(fails).rejects.toThrow('at once');
    const pieces = await streamAsProduced(async (give) => {
      for (let made = 0; made < 3; made++) {
        give(bytes('x'));
        await turn();
      }
      throw new Error('later');
    });
    await expect(joined(pieces)).rejects.toThrow('later');
  });
});
