/** Laws of every struct of the protocol, whoever has declared it. */
import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HEADER_FLAG, readHeader, writeHeader } from './header.ts';
import {
  NegotiateRequest,
  NegotiateResponse,
  negotiateRequest,
  negotiateResponse,
  readContexts,
  readDialects,
} from './negotiate.ts';
import { Reader, WireError } from './reader.ts';
import { readSmb1Dialects } from './smb1-negotiate.ts';
import type { Struct } from './struct.ts';
import { Writer } from './writer.ts';

type Values = Readonly<Record<string, unknown>>;
type AnyStruct = Struct<Values>;

const isStruct = (value: unknown): value is AnyStruct =>
  typeof value === 'object' && value !== null && 'decode' in value && 'structureSize' in value;

const folder = new URL('.', import.meta.url);
const modules = readdirSync(folder).filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'));
const structs = new Map<string, AnyStruct>();
for (const file of modules) {
  const exported: Readonly<Record<string, unknown>> = await import(new URL(file, folder).href);
  for (const [name, value] of Object.entries(exported)) if (isStruct(value)) structs.set(name, value);
}

/** Bytes after their tails are read as a part of the message, not as a field's own: `negotiate` has functions for them. */
const readByOffset = new Set(['NegotiateResponse']);

/** A value like the one that zeros stand for: numbers that fit any field, and tails of any bytes. */
function aValue(like: unknown): fc.Arbitrary<unknown> {
  if (typeof like === 'number') return fc.nat(255);
  if (typeof like === 'bigint') return fc.bigInt({ min: 0n, max: 0xffff_ffff_ffff_ffffn });
  if (typeof like === 'string') return fc.string({ unit: 'binary', maxLength: 20 });
  if (Buffer.isBuffer(like)) {
    const { length } = like;
    const size = length === 0 ? { maxLength: 40 } : { minLength: length, maxLength: length };
    return fc.uint8Array(size).map((bytes) => Buffer.from(bytes));
  }
  return fc.record(Object.fromEntries(Object.entries(like as Values).map(([name, value]) => [name, aValue(value)])));
}

function zerosOf(struct: AnyStruct): Values {
  const zeros = Buffer.alloc(struct.size);
  if (struct.structureSize !== undefined) zeros.writeUInt16LE(struct.structureSize, 0);
  return struct.decode(zeros);
}

describe('The structs', () => {
  it('are found', () => {
    expect(structs.size).toBeGreaterThan(20);
  });

  describe.each([...structs])('%s', (name, struct) => {
    it('is read as it was written, at any place of a message', () => {
      if (readByOffset.has(name)) return;
      fc.assert(
        fc.property(aValue(zerosOf(struct)), fc.nat(100), (value, place) => {
          const writer = new Writer();
          writer.zeros(place);
          struct.append(writer, value as Values);
          expect(struct.decode(writer.finish(), place)).toEqual(value);
        }),
      );
    });

    it('is read of junk, or refused by a WireError', () => {
      const junk = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
      fc.assert(
        fc.property(junk, fc.boolean(), (bytes, hasSize) => {
          if (hasSize && struct.structureSize !== undefined && bytes.length >= 2)
            bytes.writeUInt16LE(struct.structureSize);
          try {
            struct.decode(bytes);
          } catch (error) {
            expect(error).toBeInstanceOf(WireError);
          }
        }),
        { numRuns: 300 },
      );
    });
  });
});

describe('A tail', () => {
  it('cannot lie before the end of the fields, nor beyond the message', () => {
    const setup = structs.get('SessionSetupResponse')!;
    const write = (offset: number, length: number) => {
      const bytes = setup.encode({ sessionFlags: 0, securityBuffer: Buffer.from('token') });
      bytes.writeUInt16LE(offset, 4);
      bytes.writeUInt16LE(length, 6);
      return bytes;
    };
    expect(setup.decode(write(8, 5)).securityBuffer).toEqual(Buffer.from('token'));
    for (const [offset, length] of [
      [7, 5],
      [8, 6],
      [0, 1],
      [65_535, 1],
    ] as const) {
      expect(() => setup.decode(write(offset, length))).toThrow(WireError);
    }
    expect(setup.decode(write(65_535, 0)).securityBuffer).toHaveLength(0);
  });
});

describe('A header', () => {
  it.each([0, HEADER_FLAG.async])('with flags %i is read as it was written', (flags) => {
    const asynchronous = flags !== 0;
    const header = {
      ...{ creditCharge: 1, status: 0xc000_0022, command: 5, credits: 9, flags, nextCommand: 64, messageId: 1n << 60n },
      ...{ asyncId: asynchronous ? 77n : 0n, treeId: asynchronous ? 0 : 0xffff_ffff, sessionId: 3n },
      signature: Buffer.alloc(16, 7),
    };
    const writer = new Writer();
    writeHeader(writer, header);
    expect(readHeader(new Reader(writer.finish()))).toEqual(header);
  });
});

describe('NEGOTIATE', () => {
  const contexts = [
    { type: 1, data: Buffer.from('01002000010000', 'hex') },
    { type: 5, data: Buffer.from('name') },
  ];
  const place = (body: Buffer) => Buffer.concat([Buffer.alloc(64), body]);

  it('has its dialects and contexts at multiples of 8', () => {
    const fields = { securityMode: 1, capabilities: 0x7f, clientGuid: Buffer.alloc(16, 1) };
    const dialects = [0x210, 0x300, 0x311];
    const writer = new Writer();
    writer.zeros(64);
    NegotiateRequest.append(writer, negotiateRequest(fields, dialects, contexts));
    const message = writer.finish();
    const request = NegotiateRequest.decode(message, 64);
    expect(request.contextOffset % 8).toBe(0);
    expect(readDialects(request)).toEqual(dialects);
    expect(readContexts(message, request)).toEqual(contexts);
  });

  it('is answered with contexts after the security buffer', () => {
    const response = negotiateResponse(
      {
        ...{ securityMode: 1, dialect: 0x311, serverGuid: Buffer.alloc(16), capabilities: 0, maxTransactSize: 1 },
        ...{
          maxReadSize: 2,
          maxWriteSize: 3,
          systemTime: 4n,
          serverStartTime: 5n,
          securityBuffer: Buffer.from('offer'),
        },
      },
      contexts,
    );
    const writer = new Writer();
    writer.zeros(64);
    NegotiateResponse.append(writer, response);
    const message = writer.finish();
    expect(NegotiateResponse.decode(message, 64).securityBuffer).toEqual(Buffer.from('offer'));
    expect(readContexts(message, NegotiateResponse.decode(message, 64))).toEqual(contexts);
  });

  it('of smbclient 4.17 offers five dialects, four ciphers and three signatures', () => {
    const captured = Buffer.from(CAPTURED_NEGOTIATE, 'hex');
    const request = NegotiateRequest.decode(place(captured), 64);
    expect(readDialects(request)).toEqual([0x202, 0x210, 0x300, 0x302, 0x311]);
    expect(readContexts(place(captured), request).map(({ type }) => type)).toEqual([1, 2, 8, 5]);
  });

  it('of SMB1 names its dialects', () => {
    const captured = Buffer.from(CAPTURED_SMB1, 'hex');
    expect(readSmb1Dialects(captured)).toContain('SMB 2.???');
    for (let length = 0; length < captured.length; length += 1) {
      expect(() => readSmb1Dialects(captured.subarray(0, length))).toThrow(WireError);
    }
  });
});

/** The body of smbclient's first message. */
const CAPTURED_NEGOTIATE =
  '24000500010000007f0000001aebce5c5268fd4abbe977eae8644b48700000000400000002021002000302031103000001002600000000000100200001005e173e772edabbfbe8bd145d61d27ba4736ff1b15444ce2d85d8944b9738a4c7000002000a0000000000040002000100040003000000000000000800080000000000030002000100000005001200000000003100320037002e0030002e0030002e003100';

/** impacket's first message. */
const CAPTURED_SMB1 =
  'ff534d4272000000001801c8000000000000000000000000ffff000000000000002200024e54204c4d20302e31320002534d4220322e3030320002534d4220322e3f3f3f00';
