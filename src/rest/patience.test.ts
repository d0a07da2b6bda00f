import { EventEmitter } from 'node:events';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { waitFor } from './patience.ts';

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
