import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { crc64, segmentsOf, structuredMessage } from '../../../test/support/structured-messages.mjs';
import { DecodedStream, decodeWhole } from './decoded-stream.ts';
import { encodeContent } from './encoded-reply.ts';
import { MessageDecoder } from './message-decoder.ts';
import { encodedLength, SEGMENT_BYTES } from './message-encoder.ts';

const MIB = 1 << 20;
const aSegment = fc.uint8Array({ maxLength: 40 });
const someSegments = fc.array(aSegment, { minLength: 1, maxLength: 12 });
/** Where the chunks of a body end, in random places. */
const someCuts = fc.array(fc.nat(600), { maxLength: 20 });

function chunksOf(body: Uint8Array, cuts: readonly number[]): Buffer[] {
  const ends = [...new Set(cuts.filter((cut) => cut < body.length)), body.length].sort((a, b) => a - b);
  return ends.map((end, at) => Buffer.from(body.subarray(ends[at - 1] ?? 0, end)));
}

async function* streamOf(chunks: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks;
}

function contentIn(decoder: MessageDecoder, chunk: Buffer): Uint8Array {
  const work = decoder.decode(chunk);
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

/** The content, or the code of the refusal. */
function decoded(chunks: readonly Buffer[], content: number, message = Buffer.concat(chunks).length): Buffer | string {
  try {
    const decoder = new MessageDecoder({ message, content });
    const whole = Buffer.concat(chunks.map((chunk) => contentIn(decoder, chunk)));
    return decoder.end() === crc64(whole).toString('base64') ? whole : 'Crc64Mismatch';
  } catch (error) {
    return (error as { code: string }).code;
  }
}

describe('MessageDecoder', () => {
  it('finds the content of any segments, in chunks of any length', () => {
    fc.assert(
      fc.property(someSegments, someCuts, (segments, cuts) => {
        const content = Buffer.concat(segments);
        expect(decoded(chunksOf(structuredMessage(segments), cuts), content.length)).toEqual(content);
      }),
    );
  });

  it('refuses a message of which any byte has changed', () => {
    fc.assert(
      fc.property(someSegments, fc.nat(), fc.integer({ min: 1, max: 255 }), (segments, place, change) => {
        const content = Buffer.concat(segments);
        const message = structuredMessage(segments);
        message[place % message.length]! ^= change;
        expect(decoded([message], content.length)).toBeOneOf(['InvalidStructuredMessage', 'Crc64Mismatch']);
      }),
      { numRuns: 500 },
    );
  });

  it('refuses a message that was cut off, or goes on, wherever it is, with its length right or wrong', () => {
    const segments = [Buffer.from('abc'), Buffer.from('de')];
    const message = structuredMessage(segments);
    for (let length = 0; length < message.length; length++) {
      expect(decoded([Buffer.from(message.subarray(0, length))], 5)).toBe('InvalidStructuredMessage');
      expect(decoded([Buffer.from(message.subarray(0, length))], 5, message.length)).toBe('InvalidStructuredMessage');
    }
    const longer = Buffer.concat([message, Buffer.alloc(1)]);
    expect(decoded([Buffer.from(longer)], 5)).toBe('InvalidStructuredMessage');
    expect(decoded([Buffer.from(longer)], 5, message.length)).toBe('InvalidStructuredMessage');
  });

  it.each([
    ['another version', { version: 2 }],
    ['a length that is not that of the body', { length: 5 }],
    ['a length of 64 bits', { length: Number.MAX_SAFE_INTEGER }],
    ['no flag', { flags: 0 }],
    ['a flag that version 1 does not have', { flags: 3 }],
    ['no segments', { count: 0 }],
    ['more segments than there are', { count: 3 }],
    ['fewer segments than there are', { count: 1 }],
    ['segments that begin at 0', { numbers: [0, 1] }],
    ['segments in another order', { numbers: [2, 1] }],
    ['one segment twice', { numbers: [1, 1] }],
  ])('refuses %s', (_, wrong) => {
    const message = structuredMessage([Buffer.from('abc'), Buffer.from('de')], wrong);
    expect(decoded([message], 5)).toBe('InvalidStructuredMessage');
  });

  it('refuses a content of another length than was announced', () => {
    const message = structuredMessage([Buffer.from('abc'), Buffer.from('de')]);
    for (const length of [0, 4, 6, 5 + 18])
      expect(decoded([Buffer.from(message)], length)).toBe('InvalidStructuredMessage');
  });

  it('refuses a content outside of segments', () => {
    const message = Buffer.concat([structuredMessage([], { length: 21 + 5 }), Buffer.from('abcde')]);
    expect(decoded([message], 5)).toBe('InvalidStructuredMessage');
  });

  it('refuses a segment that is longer than the content before its bytes come', () => {
    const message = structuredMessage([Buffer.from('abc'), Buffer.from('de')]);
    message.writeBigUInt64LE(2n ** 64n - 1n, 15);
    expect(decoded([message.subarray(0, 23)], 5, message.length)).toBe('InvalidStructuredMessage');
  });

  it('lets others run between the slices of many short segments', () => {
    const segments = segmentsOf(Buffer.alloc(1_000), 1);
    const decoder = new MessageDecoder({ message: 21 + 19 * 1_000, content: 1_000 });
    const work = decoder.decode(structuredMessage(segments));
    let slices = 1;
    while (!work.next().done) slices++;
    expect(slices).toBe(4);
  });

  it('gives as the reason of a wrong checksum both of them', async () => {
    const message = structuredMessage([Buffer.from('abc')]);
    message[23] = 'x'.charCodeAt(0);
    const details = {
      UserSpecifiedCrc64: crc64(Buffer.from('abc')).toString('base64'),
      ServerCalculatedCrc64: crc64(Buffer.from('xbc')).toString('base64'),
    };
    const refusal = expect.objectContaining({ code: 'Crc64Mismatch', details });
    await expect(decodeWhole(message, { message: message.length, content: 3 })).rejects.toEqual(refusal);
  });
});

describe('DecodedStream', () => {
  it('returns each chunk once all of its content has been used, and a chunk without content at once', async () => {
    const segments = segmentsOf(Buffer.alloc(64, 'content'), 3);
    const body = structuredMessage(segments);
    const chunks = chunksOf(body, [5, 13, 14, 24, 100, 200, 230, body.length - 3]);
    const recycled: Uint8Array[] = [];
    const source = Object.assign(streamOf(chunks), {
      recycle: (some: readonly Uint8Array[]) => recycled.push(...some),
    });
    const stream = new DecodedStream(source, { message: body.length, content: 64 }, () => {});
    const pieces: Uint8Array[] = [];
    for await (const piece of stream) pieces.push(piece);
    const withContent = chunks.filter((chunk) => !recycled.includes(chunk));
    expect(recycled.length + pieces.length).toBe(chunks.length);
    expect(recycled.length).toBeGreaterThan(1);
    stream.recycle(pieces);
    expect(recycled.slice(-pieces.length)).toEqual(withContent);
  });

  it('states the checksum of the message when it ends', async () => {
    const body = structuredMessage([Buffer.from('abc'), Buffer.from('de')]);
    let stated: string | undefined;
    const lengths = { message: body.length, content: 5 };
    const stream = new DecodedStream(streamOf(chunksOf(body, [30])), lengths, (crc) => {
      stated = crc;
    });
    expect((await stream.readWhole(5)).toString()).toBe('abcde');
    expect(stated).toBe(crc64(Buffer.from('abcde')).toString('base64'));
  });
});

describe('encodeContent', () => {
  const encoded = async (pieces: readonly Buffer[], length: number) => {
    const parts: Uint8Array[] = [];
    for await (const part of encodeContent(streamOf(pieces), length)) parts.push(part);
    return Buffer.concat(parts);
  };

  it.each([0, 1, 16, SEGMENT_BYTES - 1, SEGMENT_BYTES, SEGMENT_BYTES + 1, 2 * SEGMENT_BYTES, 9 * MIB + 5])(
    'writes %i bytes as segments of 4 MiB, whole and in pieces',
    async (length) => {
      const content = Buffer.alloc(length, 'any content');
      const expected = structuredMessage(segmentsOf(content, SEGMENT_BYTES));
      expect(encodedLength(length)).toBe(expected.length);
      const whole = encodeContent(content, length) as readonly Uint8Array[];
      expect(Buffer.concat(whole).equals(expected)).toBe(true);
      const pieces = chunksOf(content, [1, 100, MIB, MIB + 1, SEGMENT_BYTES - 10, 6 * MIB]).filter((p) => p.length > 0);
      expect((await encoded(pieces, length)).equals(expected)).toBe(true);
    },
  );

  it('has at most 65,535 segments, however long the content is', () => {
    const tebibyte = 2 ** 40;
    expect(encodedLength(tebibyte)).toBeLessThanOrEqual(tebibyte + 21 + 18 * 65_535);
    expect(encodedLength(190 * tebibyte)).toBeLessThanOrEqual(190 * tebibyte + 21 + 18 * 65_535);
  });

  it('copies short pieces, whose memory the source may use again, and no long ones', async () => {
    const memory = Buffer.alloc(SEGMENT_BYTES + 5);
    const parts: Uint8Array[] = [];
    for await (const part of encodeContent(streamOf([memory]), memory.length)) parts.push(part);
    const sharing = parts.filter(({ buffer }) => buffer === memory.buffer);
    expect(sharing.map(({ length }) => length)).toEqual([SEGMENT_BYTES]);
  });

  it('releases its source even if no piece was pulled', async () => {
    let released = 0;
    const source = {
      [Symbol.asyncIterator]: () => ({
        next: async () => ({ done: true, value: undefined }) as const,
        return: async () => {
          released++;
          return { done: true, value: undefined } as const;
        },
      }),
    };
    const stream = encodeContent(source, 5) as AsyncIterable<Uint8Array>;
    await stream[Symbol.asyncIterator]().return!();
    expect(released).toBe(1);
  });
});
