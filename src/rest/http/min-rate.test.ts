import { EventEmitter } from 'node:events';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { MinRate, waitForEvent } from './min-rate.ts';

describe('A wait for a client', () => {
  it('ends with the event, with the connection, or by `end`, and leaves no listener', async () => {
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

  it('has the idle timer set as long as any of several waits uses it', () => {
    const [message, socket] = [new EventEmitter(), new Socket()];
    const first = waitForEvent(message, 'first', socket, 1000);
    const second = waitForEvent(message, 'second', socket, 1000);
    first.end();
    first.end();
    expect(socket.timeout).toBe(1000);
    second.end();
    expect(socket.timeout).toBe(0);
  });

  it('without an idle timeout sets no timer', () => {
    const [message, socket] = [new EventEmitter(), new Socket()];
    waitForEvent(message, 'event', socket).end();
    expect(socket.timeout).toBeUndefined();
  });

  it('does not stop the timer that Node starts with the same event', () => {
    const [message, socket] = [new EventEmitter(), new Socket()];
    message.on('finish', () => socket.setTimeout(5000));
    waitForEvent(message, 'finish', socket, 1000);
    message.emit('finish');
    expect(socket.timeout).toBe(5000);
    socket.destroy();
  });
});

describe('The minimum rate', () => {
  it('has a budget of time that waiting spends and bytes refill, up to its maximum', () => {
    const minRate = new MinRate(10_000, 100);
    minRate.addWait(9_000, 0);
    minRate.addWait(0, 1_000_000);
    minRate.addWait(9_999, 0);
    expect(minRate.isViolated()).toBe(false);
    minRate.addWait(1, 0);
    expect(minRate.isViolated()).toBe(true);
  });

  it('is violated by a slower sender in the end, never by a faster one, whatever was sent before', () => {
    const [slow, steady] = [new MinRate(10_000, 100), new MinRate(10_000, 100)];
    slow.addWait(1, 1_000_000);
    let seconds = 0;
    for (; !slow.isViolated() && seconds < 1_000; seconds++) slow.addWait(1_000, 90);
    expect(seconds).toBe(100);
    for (let count = 0; count < 10_000; count++) steady.addWait(1_000, 101);
    expect(steady.isViolated()).toBe(false);
  });

  it('is not violated by stalls that bursts make up for', () => {
    const minRate = new MinRate(10_000, 100);
    for (let count = 0; count < 100; count++) minRate.addWait(60_000, 6_000);
    expect(minRate.isViolated()).toBe(false);
  });
});
