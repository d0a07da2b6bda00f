import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { splitCompound } from './compound.ts';
import { FrameReader } from './framing.ts';
import { MessageWindow } from './message-window.ts';
import { HEADER_FLAG, NO_SIGNATURE, writeHeader } from './wire/header.ts';
import { WireError } from './wire/reader.ts';
import { Writer } from './wire/writer.ts';

describe('Packets of Direct TCP', () => {
  const aPacket = fc.uint8Array({ minLength: 4, maxLength: 100 }).map((bytes) => Buffer.from(bytes));

  it('arrive whole, however the bytes are cut', () => {
    fc.assert(
      fc.property(fc.array(aPacket, { maxLength: 8 }), fc.array(fc.integer({ min: 1, max: 60 })), (packets, cuts) => {
        const stream = Buffer.concat(packets.flatMap((packet) => [prefix(packet.length), packet]));
        const received: Buffer[] = [];
        const frames = new FrameReader();
        for (let at = 0, cut = 0; at < stream.length; cut += 1) {
          const end = at + (cuts[cut % Math.max(1, cuts.length)] ?? 7);
          frames.push(
            stream.subarray(at, end),
            () => 100,
            (packet) => received.push(packet),
          );
          at = end;
        }
        expect(received).toEqual(packets);
        expect(frames.isWithinPacket).toBe(false);
      }),
    );
  });

  it.each([
    ['longer than allowed', Buffer.from('00000065', 'hex')],
    ['too short for any protocol', Buffer.from('00000003', 'hex')],
    ['of another kind, as sessions of NetBIOS', Buffer.from('81000044', 'hex')],
  ])('are refused if they are %s, before a byte of them has arrived', (_title, head) => {
    expect(() =>
      new FrameReader().push(
        head,
        () => 100,
        () => undefined,
      ),
    ).toThrow(WireError);
  });

  function prefix(length: number): Buffer {
    const bytes = Buffer.alloc(4);
    bytes.writeUIntBE(length, 1, 3);
    return bytes;
  }
});

describe('A compound', () => {
  const header = (nextCommand: number, size = 64) => {
    const writer = new Writer();
    writeHeader(writer, {
      ...{
        creditCharge: 1,
        status: 0,
        command: 13,
        credits: 1,
        flags: HEADER_FLAG.related,
        nextCommand,
        messageId: 1n,
      },
      ...{ asyncId: 0n, treeId: 0, sessionId: 0n, signature: NO_SIGNATURE },
    });
    writer.zeros(size - 64);
    return writer.finish();
  };

  it('is split where its headers say, and each part has its padding', () => {
    const packet = Buffer.concat([header(72, 72), header(80, 80), header(0, 68)]);
    expect(splitCompound(packet, 3).map(({ bytes }) => bytes.length)).toEqual([72, 80, 68]);
    expect(() => splitCompound(packet, 2)).toThrow('more than 2');
  });

  it.each([1, 63, 68, 70, 136, 0xffff_fff8])('whose next message is at %i is refused', (next) => {
    expect(() => splitCompound(Buffer.concat([header(next, 72), header(0, 64)]), 9)).toThrow(WireError);
  });
});

describe('The window of MessageIds', () => {
  it('has each id once, in any order, and no more than were granted', () => {
    const window = new MessageWindow(10);
    window.use(0n, 1);
    expect(() => window.use(0n, 1)).toThrow(WireError);
    expect(() => window.use(1n, 1)).toThrow(WireError);
    expect(window.grant(4)).toBe(4);
    window.use(3n, 2);
    expect(() => window.use(4n, 1)).toThrow('used before');
    expect(() => window.use(2n, 2)).toThrow(WireError);
    window.use(1n, 0);
  });

  it('never grows beyond its maximum, and always lets a client go on that uses its ids', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(40), { minLength: 1, maxLength: 60 }), (wanted) => {
        const window = new MessageWindow(16);
        let granted = 1;
        let next = 0n;
        for (const count of wanted) {
          window.use(next, 1);
          next += 1n;
          granted += window.grant(count) - 1;
          expect(granted).toBeGreaterThan(0);
          expect(granted).toBeLessThanOrEqual(16);
        }
      }),
    );
  });

  it('does not move while an id is left out', () => {
    const window = new MessageWindow(4);
    window.use(0n, 1);
    window.grant(4);
    for (const id of [2n, 3n, 4n]) window.use(id, 1);
    expect(window.grant(9)).toBe(0);
    window.use(1n, 1);
    expect(window.grant(9)).toBe(4);
  });
});
