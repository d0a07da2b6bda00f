import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Key } from './keys.ts';
import { newChannelMemory, openReceiver, openSender } from './lmdb-channel.ts';
import { type Judged, unpack } from './lmdb-parcel.ts';

const { port1, port2 } = new MessageChannel();
const all = Number.POSITIVE_INFINITY;

function openChannel() {
  const memory = newChannelMemory();
  const wake = vi.fn<() => void>();
  const late = vi.fn<() => void>();
  const sender = openSender(memory, wake, port1, late);
  const receiver = openReceiver(memory, () => receiveMessageOnPort(port2)!.message);
  return { sender, receiver, wake, late };
}

function group(name: string, valueBytes = 10): Judged[] {
  const writes = [{ kind: 'put' as const, key: name as Key, value: new Uint8Array(valueBytes) }];
  return [{ checks: [], ranges: [], bodies: [{ stamp: 1n, writes }] }];
}

const nameOf = (bytes: Uint8Array): string => unpack(bytes)[0]!.bodies[0]!.writes[0]!.key;

describe('The channel to the writer', () => {
  afterEach(() => vi.useRealTimers());

  it('brings groups in their order, wherever they find room, and never more than are settled in time', () => {
    const sizes = fc.constantFrom(0, 1_000, 120 << 10, 140 << 10);
    const steps = fc.array(fc.oneof(sizes, fc.constantFrom('take', 'settle', 'look')), { maxLength: 80 });
    fc.assert(
      fc.property(steps, (moves) => {
        const { sender, receiver } = openChannel();
        const sent: string[] = [];
        const taken: string[] = [];
        let [settled, known] = [0, 0];
        for (const move of moves) {
          if (typeof move === 'number') {
            expect(sender.isFull()).toBe(sent.length - known === 8);
            if (sender.isFull()) continue;
            sent.push(`group ${sent.length}`);
            sender.send(group(sent.at(-1)!, move));
          } else if (move === 'take') {
            taken.push(...receiver.take(all).map(nameOf));
            expect(taken).toEqual(sent);
          } else if (move === 'settle' && settled < taken.length) {
            receiver.settle(true);
            settled++;
          } else if (move === 'look') {
            known += sender.settled();
            expect(known).toBe(settled);
          }
        }
        receiver.take(all);
      }),
    );
  });

  it('takes no more at once than was asked for', () => {
    const { sender, receiver } = openChannel();
    for (const name of ['a', 'b', 'c']) sender.send(group(name, 1_000));
    expect(receiver.take(1_500).map(nameOf)).toEqual(['a', 'b']);
    expect(receiver.take(1_500).map(nameOf)).toEqual(['c']);
  });

  it('lets nobody know of a group that was announced before it is seen', () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    const { sender, receiver, late } = openChannel();
    sender.send(group('a'));
    receiver.take(all);
    receiver.announce();
    expect(sender.settled()).toBe(0);
    expect(late).not.toHaveBeenCalled();
    vi.runAllTimers();
    expect(late).toHaveBeenCalledOnce();
    receiver.settle(true);
    expect(sender.settled()).toBe(1);
    expect(sender.settled()).toBe(0);
  });

  it('leaves it to a message what became of a group that was announced and then failed', () => {
    const { sender, receiver } = openChannel();
    for (const name of ['a', 'b', 'c']) sender.send(group(name));
    receiver.take(all);
    receiver.settle(true);
    receiver.announce();
    receiver.settle(false);
    receiver.settle(true);
    expect(sender.settled()).toBe(1);
    expect(sender.settled()).toBe(0);
    sender.toldOf();
    expect(sender.settled()).toBe(1);
  });

  it('wakes a writer by message only where it sleeps', () => {
    const { sender, receiver, wake } = openChannel();
    sender.send(group('a'));
    expect(wake).toHaveBeenCalledTimes(1);
    receiver.take(all);
    sender.send(group('b'));
    expect(wake).toHaveBeenCalledTimes(1);
    expect(receiver.lingers()).toBe(true);
    receiver.take(all);
    expect(receiver.lingers()).toBe(false);
    sender.send(group('c'));
    expect(wake).toHaveBeenCalledTimes(2);
  });
});
