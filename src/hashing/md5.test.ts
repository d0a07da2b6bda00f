import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileMd5, MD5_END, MD5_LANES } from './md5.ts';
import { createWasmMemory } from './wasm.ts';

const memory = createWasmMemory(MD5_END + 4096);
const bytes = Buffer.from(memory.buffer);
const md5s = compileMd5(memory);

const expected = (body: Uint8Array) => createHash('md5').update(body).digest('base64');

/** Copies the pieces into the memory, one after the other. */
function update(pieces: readonly { md5: ReturnType<typeof md5s.begin>; piece: Uint8Array }[]): void {
  let to = MD5_END;
  const inputs = pieces.map(({ md5, piece }) => {
    const from = to;
    bytes.set(piece, from);
    to += piece.length;
    return { md5, from, to };
  });
  md5s.update(inputs);
}

describe('MD5 in WebAssembly', () => {
  it('is that of node:crypto for all lengths around the end of a block', () => {
    for (let length = 0; length <= 260; length++) {
      const body = Buffer.alloc(length, length);
      const md5 = md5s.begin();
      if (length > 0) update([{ md5, piece: body }]);
      expect(md5s.digest(md5)).toBe(expected(body));
    }
  });

  it('does not depend on how bodies are cut, nor on those in the other lanes', () => {
    const piece = fc.uint8Array({ maxLength: 300 });
    const body = fc.array(piece, { maxLength: 6 });
    fc.assert(
      fc.property(fc.array(body, { minLength: 1, maxLength: MD5_LANES }), (bodies) => {
        const states = bodies.map(() => md5s.begin());
        for (let round = 0; round < Math.max(...bodies.map(({ length }) => length)); round++) {
          update(states.flatMap((md5, i) => (bodies[i]![round] ? [{ md5, piece: bodies[i]![round]! }] : [])));
        }
        expect(states.map(md5s.digest)).toEqual(bodies.map((pieces) => expected(Buffer.concat(pieces))));
      }),
      { numRuns: 500 },
    );
  });
});
