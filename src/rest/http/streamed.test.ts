import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type BufferedStream, prepend, type StreamedDocument, streamAsProduced } from './streamed.ts';

const bytes = (text: string) => Buffer.from(text);

async function joined(pieces: StreamedDocument): Promise<string> {
  let text = '';
  for await (const piece of pieces) text += Buffer.from(piece).toString();
  return text;
}

describe('A streamed document', () => {
  it('is an array if it has few pieces', async () => {
    const pieces = await streamAsProduced(async (emit) => emit(bytes('all')));
    expect(pieces).toEqual([bytes('all')]);
    expect(await joined(prepend(bytes('first, '), pieces))).toBe('first, all');
  });

  it('can be pulled while the rest is produced', async () => {
    let finish = () => {};
    const pieces = await streamAsProduced(async (emit) => {
      emit(bytes('a'));
      emit(bytes('b'));
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      emit(bytes('c'));
    });
    const taken = (prepend(bytes('>'), pieces) as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    for (const text of ['>', 'a', 'b']) expect((await taken.next()).value).toEqual(bytes(text));
    const last = taken.next();
    finish();
    expect((await last).value).toEqual(bytes('c'));
    expect((await taken.next()).done).toBe(true);
  });

  it('is produced completely before it is pulled', async () => {
    let made = 0;
    await streamAsProduced(async (emit) => {
      for (; made < 20; made++) {
        emit(bytes('x'));
        await turn();
      }
    });
    for (let turns = 0; turns < 30; turns++) await turn();
    expect(made).toBe(20);
  });

  it('has the number of buffered bytes, and whether more will be produced', async () => {
    let finish = () => {};
    const made = await streamAsProduced(async (emit) => {
      for (const text of ['aaaa', 'bb']) emit(bytes(text));
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      emit(bytes('c'));
    });
    const pieces = prepend(bytes('>'), made) as BufferedStream;
    const notified: [number, boolean][] = [];
    pieces.onProduced!(() => notified.push([pieces.bufferedBytes(), pieces.isProducing!()]));
    expect(pieces.bufferedBytes()).toBe(6);
    for (const left of [6, 2]) {
      await pieces.next();
      expect(pieces.bufferedBytes()).toBe(left);
    }
    finish();
    await turn();
    expect(notified).toEqual([
      [3, true],
      [3, false],
    ]);
  });

  it('fails where its producer does: at once, or after the pieces that were produced', async () => {
    const fails = streamAsProduced(async () => {
      throw new Error('at once');
    });
    await expect(fails).rejects.toThrow('at once');
    const pieces = await streamAsProduced(async (emit) => {
      for (let made = 0; made < 3; made++) {
        emit(bytes('x'));
        await turn();
      }
      throw new Error('later');
    });
    await expect(joined(pieces)).rejects.toThrow('later');
  });
});
