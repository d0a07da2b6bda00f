/** Clients that send or read too slowly. The server's limits are shortened here. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ACCOUNT, headOf, rawClient } from '../support/raw-client.ts';
import { smallServer } from '../support/stub-server.ts';

const BLOB = `/${ACCOUNT}/c/b`;
const MIB = 1 << 20;

interface Slow {
  readonly closed: Promise<unknown>;
  readonly socket: Socket;
  text(): string;
}

/** Sends this, and then one more byte every few milliseconds, as long as it can. */
function dribbler(port: number, first: string, milliseconds = 20): Slow {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    text += chunk;
  });
  socket.write(first);
  const timer = setInterval(() => socket.writable && socket.write('x'), milliseconds);
  // The client may see a reset: bytes that arrive after the server has closed are refused.
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve())).finally(() =>
    clearInterval(timer),
  );
  onTestFinished(() => {
    clearInterval(timer);
    socket.destroy();
  });
  return { closed, socket, text: () => text };
}

const slowHeaders = (port: number) => dribbler(port, 'GET / HTTP/1.1\r\nHost: x\r\nx-ms-meta-a: ');
const slowBody = (port: number) => dribbler(port, headOf('PUT', BLOB, { 'Content-Length': String(MIB) }));

describe('A client that is slow', () => {
  it('with its headers is answered 408 and disconnected, and a silent one is disconnected', async () => {
    const { port } = await smallServer({ limits: { headersMilliseconds: 200 } });
    const slow = slowHeaders(port);
    const silent = connect(port, '127.0.0.1');
    silent.resume();
    await Promise.all([slow.closed, once(silent, 'close')]);
    expect(slow.text()).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('with its headers has the same limit in a second request of its connection', async () => {
    const { port } = await smallServer({ limits: { headersMilliseconds: 200 } });
    const slow = dribbler(port, `${headOf('GET', BLOB)}GET / HTTP/1.1\r\nHost: x\r\nx-ms-meta-a: `);
    await slow.closed;
    expect(slow.text()).toMatch(/^HTTP\/1\.1 200 .*HTTP\/1\.1 408 /s);
  });

  it('with its body is disconnected though it is never silent, whether the body is streamed or buffered', async () => {
    const { port, logged } = await smallServer({ rateGraceMilliseconds: 200 });
    const document = headOf('PUT', `/${ACCOUNT}/c`, { 'Content-Length': '1000' });
    await Promise.all([slowBody(port).closed, dribbler(port, document).closed]);
    expect(logged.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('with a body that was refused already is disconnected as well', async () => {
    const { port } = await smallServer({ idleMilliseconds: 200 });
    const refused = dribbler(port, headOf('PUT', '/nobody/c/b', { 'Content-Length': '200000' }));
    await refused.closed;
    expect(refused.text()).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('and fast enough all in all is not cut', async () => {
    const { port } = await smallServer({ rateGraceMilliseconds: 200 });
    const { socket, answer } = rawClient(port);
    socket.write(headOf('PUT', BLOB, { 'Content-Length': '8000' }));
    for (let sent = 0; sent < 8_000; sent += 1_000) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      socket.write(Buffer.alloc(1_000));
    }
    expect(await answer()).toMatchObject({ status: 201, headers: { 'x-ms-length': '8000' } });
    socket.destroy();
  });
});

describe('A client that does not read its answer', () => {
  it.each(['stream', 'whole'])('is cut: %s', async (name) => {
    const { port, logged } = await smallServer({ idleMilliseconds: 100 });
    const { socket } = rawClient(port);
    socket.pause();
    socket.write(headOf('GET', `/${ACCOUNT}/c/${name}`));
    await expect.poll(() => logged.map(({ message }) => message), { timeout: 20_000 }).toEqual(['client went away']);
    socket.destroy();
  });

  it('is cut when it asks for many small ones', async () => {
    const { port } = await smallServer({ idleMilliseconds: 100, limits: { bytesPerSecondMin: MIB } });
    const { socket } = rawClient(port);
    socket.pause();
    const request = headOf('GET', BLOB);
    const asking = setInterval(() => socket.writable && socket.write(request.repeat(50)), 1);
    onTestFinished(() => clearInterval(asking));
    await new Promise((resolve) => socket.once('close', resolve));
  });
});

describe('Hundreds of clients that are slow', () => {
  it('with headers and bodies cost little memory, are disconnected, and do not disturb other clients', async () => {
    const each = 200;
    const { port } = await smallServer({ limits: { headersMilliseconds: 3_000 }, rateGraceMilliseconds: 3_000 });
    await ask(port);
    global.gc?.();
    const before = process.memoryUsage().rss;
    const slow = Array.from({ length: each }, () => [slowHeaders(port), slowBody(port)]).flat();
    await Promise.all(slow.map(({ socket }) => once(socket, 'connect')));
    for (let round = 0; round < 100; round++) expect(await ask(port)).toBe(200);
    expect(process.memoryUsage().rss - before).toBeLessThan(128 * MIB);
    await Promise.all(slow.map(({ closed }) => closed));
    expect(await ask(port)).toBe(200);
  });
});

async function ask(port: number): Promise<number> {
  const { socket, answer } = rawClient(port);
  socket.write(headOf('GET', BLOB));
  const { status } = await answer();
  socket.destroy();
  return status;
}
