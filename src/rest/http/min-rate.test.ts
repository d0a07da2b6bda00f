import { EventEmitter } from 'node:events';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { MinRate, waitForEvent } from './min-rate.ts';

describe('A wait for a client', () => {
  it('is over with the event, with the connection, or when it is ended, and leaves no listener', async () => {
    for (const happen of ['event', 'close', 'end']) {
      const [message, socket] = [new EventEmitter(), new Socket()];
      const before = socket.listenerCount('close');
      const wait = waitForEvent(message, 'event', socket, 1000);
      if (happen === 'event') message.emit('event');
      if (happen === 'close') socket.emit('close');
      if (happen === 'end') wait.end();
      await wait.done;
      expect(message.listenerCount('event')).toBe(0);
      expect(socket.listenerCount('close')).toBe(before);
      expect(socket.timeout).toBe(0);
    }
  });

  it('watches the silence of a connection as long as any of several waits does', () => {
    const [message, socket] = [new EventEmitter(), new Socket()];
    const first = waitForEvent(message, 'first', socket, 1000);
    const second = waitForEvent(message, 'second', socket, 1000);
    first.end();
    first.end();
    expect(socket.timeout).toBe(1000);
    second.end();
    expect(socket.timeout).toBe(0);
  });

  it('that is for others on the connection watches nothing', () => {
    const [message, socket] = [new EventEmitter(), new Socket()];
    waitForEvent(message, 'event', socket).end();
    expect(socket.timeout).toBeUndefined();
  });

  it('leaves alone the timer that Node starts with the same event', () => {
    const [message, socket] = [new EventEmitter(), new Socket()];
    message.on('finish', () => socket.setTimeout(5000));
    waitForEvent(message, 'finish', socket, 1000);
    message.emit('finish');
    expect(socket.timeout).toBe(5000);
    socket.destroy();
  });
});

describe('Patience with a client', () => {
  it('is used up by waiting, and given back by bytes, but never more than all of it', () => {
    const minRate = new MinRate(10_000, 100);
    minRate.addWait(9_000, 0);
    minRate.addWait(0, 1_000_000);
    minRate.addWait(9_999, 0);
    expect(minRate.isViolated()).toBe(false);
    minRate.addWait(1, 0);
    expect(minRate.isViolated()).toBe(true);
  });

  it('ends for who sends less than is asked for, never for who sends more, whatever has come before', () => {
    const [slow, steady] = [new MinRate(10_000, 100), new MinRate(10_000, 100)];
    slow.addWait(1, 1_000_000);
    let seconds = 0;
    for (; !slow.isViolated() && seconds < 1_000; seconds++) slow.addWait(1_000, 90);
    expect(seconds).toBe(100);
    for (let count = 0; count < 10_000; count++) steady.addWait(1_000, 101);
    expect(steady.isViolated()).toBe(false);
  });

  it('outlasts a stall that a burst follows', () => {
    const minRate = new MinRate(10_000, 100);
    for (let count = 0; count < 100; count++) minRate.addWait(60_000, 6_000);
    expect(minRate.isViolated()).toBe(false);
  });
});
