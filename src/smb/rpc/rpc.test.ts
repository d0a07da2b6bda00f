import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WireError } from '../wire/reader.ts';
import { Writer } from '../wire/writer.ts';
import { RpcEndpoint } from './endpoint.ts';
import { NdrReader, NdrWriter } from './ndr.ts';
import { FaultBody, PDU_TYPE, ResponseBody, readPdu, writePdu } from './pdu.ts';
import { srvsvc } from './srvsvc.ts';

const SRVSVC = 'c84f324b7016d30112785a47bf6ee18803000000';
const NDR32 = '045d888aeb1cc9119fe808002b10486002000000';
const NDR64 = '33057171babe37498319b5dbef9ccc3601000000';
const WHOLE = 3;

const shares = {
  serverName: 'HOLDFAST',
  list: async () => ['docs', 'photos'],
  find: async (name: string) => (name.toLowerCase() === 'docs' ? 'docs' : undefined),
};

function bind(transferSyntax: string, abstractSyntax = SRVSVC): Buffer {
  const body = Buffer.concat([
    Buffer.from('b810b81000000000', 'hex'),
    Buffer.from('0100000000000100', 'hex'),
    Buffer.from(abstractSyntax + transferSyntax, 'hex'),
  ]);
  return writePdu({ type: PDU_TYPE.bind, flags: WHOLE, callId: 1 }, body);
}

function call(operation: number, stub: Buffer, flags = WHOLE): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt16LE(operation, 6);
  return writePdu({ type: PDU_TYPE.request, flags, callId: 2 }, Buffer.concat([head, stub]));
}

/** No name of a server; the level twice, an empty list, no limit, no handle. */
function enumeration(level: number): Buffer {
  const writer = new Writer();
  for (const value of [0, level, level, 0x20_004, 0, 0, 0xffff_ffff, 0]) writer.u32(value);
  return writer.finish();
}

async function bound(): Promise<RpcEndpoint> {
  const endpoint = new RpcEndpoint(srvsvc(shares));
  const [ack] = await endpoint.receive(bind(NDR32));
  expect(readPdu(ack!).type).toBe(PDU_TYPE.bindAck);
  return endpoint;
}

const stubOf = (packets: readonly Buffer[]) =>
  Buffer.concat(packets.map((packet) => ResponseBody.decode(readPdu(packet).body).stub));
const faultOf = ([packet]: readonly Buffer[]) => FaultBody.decode(readPdu(packet!).body).status;

describe('An RPC endpoint', () => {
  it.each([
    ['NDR64', NDR64, SRVSVC],
    ['another interface', NDR32, SRVSVC.replace('c8', 'c9')],
  ])('refuses %s, and calls of a context that it refused', async (_title, transfer, abstract) => {
    const endpoint = new RpcEndpoint(srvsvc(shares));
    const [ack] = await endpoint.receive(bind(transfer, abstract));
    // After the sizes, the group and the address: one result, a rejection by the provider.
    expect(readPdu(ack!).body.toString('hex')).toContain('0100000002000200');
    expect(faultOf(await endpoint.receive(call(15, enumeration(1))))).toBe(0x1c01_0003);
  });

  it('lists the shares and IPC$', async () => {
    const stub = stubOf(await (await bound()).receive(call(15, enumeration(1))));
    expect(stub.readUInt32LE(12)).toBe(3);
    const text = stub.toString('utf16le');
    for (const name of ['docs\0', 'photos\0', 'IPC$\0']) expect(text).toContain(name);
    expect(stub.readUInt32LE(stub.length - 4)).toBe(0);
  });

  it('takes arguments in fragments, and packets cut anywhere', async () => {
    const expected = stubOf(await (await bound()).receive(call(15, enumeration(1))));
    const stub = enumeration(1);
    const bytes = Buffer.concat([call(15, stub.subarray(0, 8), 1), call(15, stub.subarray(8), 2)]);
    const endpoint = await bound();
    const answers: Buffer[] = [];
    for (const byte of bytes) answers.push(...(await endpoint.receive(Buffer.from([byte]))));
    expect(stubOf(answers)).toEqual(expected);
  });

  it('answers a long list in fragments of the size that the client takes', async () => {
    const names = Array.from({ length: 500 }, (_, index) => `share-${index}`);
    const endpoint = new RpcEndpoint(srvsvc({ ...shares, list: async () => names }));
    await endpoint.receive(bind(NDR32));
    const packets = await endpoint.receive(call(15, enumeration(1)));
    expect(packets.length).toBeGreaterThan(5);
    expect(packets.map((packet) => readPdu(packet).flags)).toEqual([1, ...packets.slice(2).map(() => 0), 2]);
    for (const packet of packets) expect(packet.length).toBeLessThanOrEqual(0x10b8);
    expect(stubOf(packets).toString('utf16le')).toContain('share-499\0');
  });

  it('answers other levels and names by errors, and other operations and bad arguments by faults', async () => {
    const endpoint = await bound();
    const lastNumber = (stub: Buffer) => stub.readUInt32LE(stub.length - 4);
    expect(lastNumber(stubOf(await endpoint.receive(call(15, enumeration(9)))))).toBe(124);
    expect(lastNumber(stubOf(await endpoint.receive(call(16, shareInfo('DOCS', 1)))))).toBe(0);
    expect(lastNumber(stubOf(await endpoint.receive(call(16, shareInfo('none', 1)))))).toBe(2310);
    expect(faultOf(await endpoint.receive(call(99, enumeration(1))))).toBe(0x1c01_0002);
    expect(faultOf(await endpoint.receive(call(16, Buffer.alloc(4))))).toBe(0x6f7);
  });

  it('of junk ends in a WireError, a fault or silence', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 100 }), fc.nat(20), async (junk, operation) => {
        const endpoint = await bound();
        await endpoint.receive(call(operation, Buffer.from(junk)));
        await endpoint.receive(Buffer.from(junk)).catch((error) => expect(error).toBeInstanceOf(WireError));
      }),
    );
  });

  function shareInfo(name: string, level: number): Buffer {
    const writer = new Writer();
    writer.u32(0);
    const encoded = Buffer.from(`${name}\0`, 'utf16le');
    for (const value of [encoded.length / 2, 0, encoded.length / 2]) writer.u32(value);
    writer.bytes(encoded);
    writer.align(4);
    writer.u32(level);
    return writer.finish();
  }
});

describe('A string of NDR', () => {
  it('is read as it was written', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 20 }), (value) => {
        const writer = new NdrWriter();
        writer.text(value);
        writer.flush();
        expect(new NdrReader(writer.finish()).optionalText()).toBe(value);
      }),
    );
  });
});
