import { EventEmitter } from 'node:events';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { patienceOf, waitFor } from './min-rate.ts';

describe('A wait for a client', () => {
  it('is over with the event, with the connection, or when it is ended, and leaves no listener', async () => {
    for (const happen of ['event', 'close', 'end']) {
      const [message, socket] = [new EventEmitter(), new Socket()];
      const before = socket.listenerCount('close');
      const wait = waitFor(message, 'event', socket, 1000);
      if (happen === 'event') message.emit('event');
      if (happen === 'close') socket.emit('close');
      if (happen === 'end') wait.end();
      await wait.over;
      expect(message.listenerCount('event')).toBe(0);
      expect(socket.listenerCount('close')).toBe(before);
      expect(socket.timeout).toBe(0);
    }
  });

  it('watches the silence of a connection as long as any of several waits does', () => {
    const [message, socket] = [new EventEmitter(), new Socket()];
    const first = waitFor(message, 'first', socket, 1000);
    const second = waitFor(message, 'second', socket, 1000);
    first.end();
    first.end();
    expect(socket.timeout).toBe(1000);
    second.end();
    expect(socket.timeout).toBe(0);
  });

  it('that is for others on the connection watches nothing', () => {
    const [message, socket] = [new EventEmitter(), new Socket()];
    waitFor(message, 'event', socket).end();
    expect(socket.timeout).toBeUndefined();
  });

  it('leaves alone the timer that Node starts with the same event', () => {
    const [message, socket] = [new EventEmitter(), new Socket()];
    message.on('finish', () => socket.setTimeout(5000));
    waitFor(message, 'finish', socket, 1000);
    message.emit('finish');
    expect(socket.timeout).toBe(5000);
    socket.destroy();
  });
});

describe('Patience with a client', () => {
  it('is used up by waiting, and given back by bytes, but never more than all of it', () => {
    const patience = patienceOf(10_000, 100);
    patience.waited(9_000, 0);
    patience.waited(0, 1_000_000);
    patience.waited(9_999, 0);
    expect(patience.isOver()).toBe(false);
    patience.waited(1, 0);
    expect(patience.isOver()).toBe(true);
  });

  it('ends for who sends less than is asked for, never for who sends more, whatever has come before', () => {
    const [slow, steady] = [patienceOf(10_000, 100), patienceOf(10_000, 100)];
    slow.waited(1, 1_000_000);
    let seconds = 0;
    for (; !slow.isOver() && seconds < 1_000; seconds++) slow.waited(1_000, 90);
    expect(seconds).toBe(100);
    for (let count = 0; count < 10_000; count++) steady.waited(1_000, 101);
    expect(steady.isOver()).toBe(false);
  });

  it('outlasts a stall that a burst follows', () => {
    const patience = patienceOf(10_000, 100);
    for (let count = 0; count < 100; count++) patience.waited(60_000, 6_000);
    expect(patience.isOver()).toBe(false);
  });
});
