import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileMd5, MD5_END, MD5_LANES } from './md5.ts';
import { createWasmMemory } from './wasm.ts';

const memory = createWasmMemory(MD5_END + 4096);
const bytes = Buffer.from(memory.buffer);
const md5s = compileMd5(memory);

const expected = (body: Uint8Array) => createHash('md5').update(body).digest('base64');

/** Puts them into the memory, one behind the other. */
function update(pieces: readonly { md5: ReturnType<typeof md5s.begin>; piece: Uint8Array }[]): void {
  let to = MD5_END;
  const stretches = pieces.map(({ md5, piece }) => {
    const from = to;
    bytes.set(piece, from);
    to += piece.length;
    return { md5, from, to };
  });
  md5s.update(stretches);
}

describe('MD5 within a memory', () => {
  it('is the one of all lengths around the end of a block', () => {
    for (let length = 0; length <= 260; length++) {
      const body = Buffer.alloc(length, length);
      const md5 = md5s.begin();
      if (length > 0) update([{ md5, piece: body }]);
      expect(md5s.digest(md5)).toBe(expected(body));
    }
  });

  it('does not depend on how bodies are cut, nor on those that are computed beside them', () => {
    const piece = fc.uint8Array({ maxLength: 300 });
    const body = fc.array(piece, { maxLength: 6 });
    fc.assert(
      fc.property(fc.array(body, { minLength: 1, maxLength: MD5_LANES }), (bodies) => {
        const states = bodies.map(() => md5s.begin());
        for (let turn = 0; turn < Math.max(...bodies.map(({ length }) => length)); turn++) {
          update(states.flatMap((md5, i) => (bodies[i]![turn] ? [{ md5, piece: bodies[i]![turn]! }] : [])));
        }
        expect(states.map(md5s.digest)).toEqual(bodies.map((pieces) => expected(Buffer.concat(pieces))));
      }),
      { numRuns: 500 },
    );
  });
});
