/** Streamed bodies in both directions, on a server with stub operations. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  ACCOUNT,
  headOf,
  type LogLine,
  logInto,
  rawClient,
  serviceDefinition,
  testAccounts,
} from '../../../test/support/raw-client.ts';
import { ticksFromUnix } from '../../base/time.ts';
import { CorruptChunk } from '../../extents/extents.ts';
import { StorageError } from '../../services/common/errors.ts';
import type { SentContent } from '../../services/common/upload.ts';
import { operationOn } from '../operation.ts';
import { contentBody, pathPart } from '../params.ts';
import type { Reply } from '../reply.ts';
import { ClientDisconnected } from './body-stream.ts';
import { createRestServer, type RestServer } from './server.ts';

const MIB = 1 << 20;
const PIECE = 64 << 10;
const URL = `/${ACCOUNT}/c/b`;
const logged: LogLine[] = [];

/** What the next uploads and downloads do. */
let upload: (content: SentContent) => Promise<unknown>;
let download: () => Reply;
let precheck = async (): Promise<void> => {};

const operation = operationOn<null>();
const table = [
  operation({
    name: 'Upload',
    route: 'PUT /{container}/{blob}',
    permission: 'write',
    test: 'none',
    input: { blob: pathPart(1), content: contentBody({ bytesMax: 1024 * MIB }) },
    precheck: () => precheck(),
    run: (_storage, { content }) => upload(content),
    reply: (output) => ({ status: 201, headers: { 'x-ms-output': String(output) } }),
  }),
  operation({
    name: 'Download',
    route: 'GET|HEAD /{container}/{blob}',
    permission: 'read',
    test: 'none',
    input: {},
    run: async () => download(),
    reply: (reply) => reply,
  }),
];

function start(idleMilliseconds?: number): RestServer {
  return createRestServer({
    definition: serviceDefinition(table),
    accounts: testAccounts,
    access: async () => undefined,
    context: () => null,
    log: logInto(logged),
    now: () => ticksFromUnix(Date.now()),
    managementEndpoints: { 'GET /small': async () => ({ status: 200, body: 'small' }) },
    ...(idleMilliseconds !== undefined && { idleMilliseconds }),
  });
}

let server: RestServer;
let port: number;
/** On the server's side, in the order of arrival. */
const exchanges: { request: IncomingMessage; response: ServerResponse }[] = [];
const note = (message: unknown) => exchanges.push(message as (typeof exchanges)[number]);

beforeAll(async () => {
  subscribe('http.server.request.start', note);
  server = start();
  port = await server.listen(0, '127.0.0.1');
});
afterAll(async () => {
  unsubscribe('http.server.request.start', note);
  await server.close();
});
afterEach(() => {
  precheck = async () => {};
  exchanges.length = 0;
  logged.length = 0;
});

/** Byte n is n mod 251, so that a misplaced piece is detected. */
function pattern(from: number, to: number): Buffer {
  return to > from ? Buffer.alloc(to - from, PERIOD.subarray(from % 251, (from % 251) + 251)) : Buffer.alloc(0);
}
const PERIOD = Buffer.from(Array.from({ length: 502 }, (_, at) => at % 251));

interface Source {
  readonly stream: AsyncIterable<Uint8Array>;
  pulled: number;
  started: number;
  /** How often it was released. */
  ended: number;
}

/** Releases its resources as a file would: when it ends, fails or is returned, started or not. */
function sourceOf(length: number, { failAt = Infinity, gate = async () => {}, piece = PIECE } = {}): Source {
  let over = false;
  const end = () => {
    if (!over) source.ended++;
    over = true;
    return { done: true, value: undefined } as const;
  };
  const iterator: AsyncIterator<Uint8Array> = {
    async next() {
      source.started = 1;
      if (over || source.pulled >= length) return end();
      await gate();
      if (source.pulled >= failAt) {
        end();
        throw new CorruptChunk('a checksum differs');
      }
      const from = source.pulled;
      source.pulled = Math.min(length, from + piece);
      return { done: false, value: pattern(from, source.pulled) };
    },
    async return() {
      if (over) source.ended++;
      return end();
    },
  };
  const source: Source = { stream: { [Symbol.asyncIterator]: () => iterator }, pulled: 0, started: 0, ended: 0 };
  return source;
}

/** Each download gets a source of its own. */
function sources(length: number, options?: Parameters<typeof sourceOf>[1]): Source[] {
  const made: Source[] = [];
  download = () => {
    const source = sourceOf(length, options);
    made.push(source);
    return { status: 200, headers: { 'Content-Length': length }, body: source.stream };
  };
  return made;
}

/** An upload that verifies its pieces and records how it ended. */
function counted() {
  const seen = { begun: 0, length: 0, ended: 0, error: undefined as unknown, right: true };
  upload = async (content) => {
    seen.begun++;
    let length = 0;
    try {
      for await (const chunk of content.bytes()) {
        seen.right &&= Buffer.compare(chunk, pattern(length, length + chunk.length)) === 0;
        length += chunk.length;
        seen.length = length;
      }
      return length;
    } catch (error) {
      seen.error = error;
      throw error;
    } finally {
      seen.ended++;
    }
  };
  return seen;
}

function gated() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** The same, which starts to read when `open` is called. */
function gatedUpload() {
  const { opened, open } = gated();
  const seen = counted();
  const read = upload;
  upload = async (content) => {
    await opened;
    return read(content);
  };
  return { open, seen };
}

const putHead = (length: number, headers: Record<string, string> = {}) =>
  headOf('PUT', URL, { 'Content-Length': String(length), ...headers });
const errorsLogged = () => logged.filter(({ level }) => level === 'error');

function eventually<Value>(value: () => Value) {
  return expect.poll(value, { interval: 5, timeout: 20_000 });
}

async function turns(): Promise<void> {
  for (let count = 0; count < 50; count++) await turn();
}

describe('A request body', () => {
  it('is read whole when it is small, and is a stream otherwise', async () => {
    const seen: SentContent[] = [];
    upload = async (content) => {
      seen.push(content);
      let length = 0;
      for await (const chunk of content.bytes()) length += chunk.length;
      return length;
    };
    const { socket, answer } = rawClient(port);
    for (const length of [0, 1, 16 * 1024, 16 * 1024 + 1, MIB]) {
      socket.write(putHead(length));
      socket.write(pattern(0, length));
      expect(await answer()).toMatchObject({ status: 201, headers: { 'x-ms-output': String(length) } });
    }
    expect(seen.map(({ length, whole }) => [length, whole?.length])).toEqual([
      [0, 0],
      [1, 1],
      [16 * 1024, 16 * 1024],
      [16 * 1024 + 1, undefined],
      [MIB, undefined],
    ]);
    socket.destroy();
  });

  it('is read whole when it is small and arrives in parts', async () => {
    let whole: Buffer | undefined;
    upload = async (content) => {
      whole = content.whole;
    };
    const { socket, answer } = rawClient(port);
    socket.write(putHead(10));
    await eventually(() => exchanges.length).toBe(1);
    socket.write(pattern(0, 4));
    await eventually(() => socket.bytesWritten).toBeGreaterThan(4);
    await turns();
    socket.write(pattern(4, 10));
    expect((await answer()).status).toBe(201);
    expect(whole).toEqual(pattern(0, 10));
    socket.destroy();
  });

  it('is read only as it is pulled', async () => {
    const { open, seen } = gatedUpload();
    const { socket, answer } = rawClient(port);
    const length = 64 * MIB;
    socket.write(putHead(length));
    socket.write(pattern(0, length));
    await eventually(() => exchanges[0]?.request.readableLength ?? 0).toBeGreaterThan(0);
    await turns();
    expect(exchanges[0]!.request.readableLength).toBeLessThanOrEqual(2 * PIECE);
    expect(exchanges[0]!.request.socket.bytesRead).toBeLessThan(MIB);
    open();
    expect((await answer()).headers['x-ms-output']).toBe(String(length));
    expect(seen).toMatchObject({ begun: 1, ended: 1, right: true, error: undefined });
    socket.destroy();
  });

  it('that breaks off anywhere fails with ClientDisconnected, once, without a response', async () => {
    const length = 2 * MIB;
    const all = pattern(0, length);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: length - 1 }), fc.boolean(), async (sent, politely) => {
        const seen = counted();
        const { socket } = rawClient(port);
        socket.write(putHead(length));
        await new Promise<void>((resolve) => socket.write(all.subarray(0, sent), () => resolve()));
        await eventually(() => seen.begun).toBe(1);
        if (politely) socket.end();
        else socket.resetAndDestroy();
        await eventually(() => seen.ended).toBe(1);
        expect(seen.error).toBeInstanceOf(ClientDisconnected);
        expect(seen.right).toBe(true);
        expect(seen.length).toBeLessThanOrEqual(sent);
      }),
      {
        numRuns: 20,
        examples: [
          [0, true],
          [0, false],
          [length - 1, false],
        ],
      },
    );
    expect(errorsLogged()).toEqual([]);
    expect(exchanges.every(({ request }) => request.socket.destroyed)).toBe(true);
  });

  it('that broke off before it was pulled fails with ClientDisconnected', async () => {
    const { open, seen } = gatedUpload();
    const { socket } = rawClient(port);
    socket.write(putHead(MIB));
    await eventually(() => exchanges.length).toBe(1);
    socket.resetAndDestroy();
    await eventually(() => exchanges[0]!.request.socket.destroyed).toBe(true);
    open();
    await eventually(() => seen.ended).toBe(1);
    expect(seen.error).toBeInstanceOf(ClientDisconnected);
  });

  const conflict = () => new StorageError('BlobAlreadyExists', 409, 'The specified blob already exists.');
  const refusing: [string, (content: SentContent) => Promise<unknown>][] = [
    ['before a byte is read', () => Promise.reject(conflict())],
    [
      'in the middle',
      async (content) => {
        for await (const _ of content.bytes()) throw conflict();
      },
    ],
    [
      'while the next bytes are waited for',
      async (content) => {
        const pieces = content.bytes()[Symbol.asyncIterator]();
        await pieces.next();
        pieces.next().catch(() => {});
        throw conflict();
      },
    ],
  ];

  it.each(refusing)(
    'that is large and refused %s gets its response to a client that sends everything first',
    async (_, run) => {
      upload = run;
      const { socket, answer } = rawClient(port);
      const length = 8 * MIB;
      socket.write(putHead(length));
      await new Promise((resolve) => socket.write(Buffer.alloc(length), resolve));
      const { status, headers } = await answer();
      expect({ status, connection: headers.connection }).toEqual({ status: 409, connection: 'close' });
      socket.destroy();
    },
  );

  it.each(refusing)('that has a short rest and is refused %s leaves the connection usable', async (_, run) => {
    const { socket, answer } = rawClient(port);
    for (let round = 0; round < 3; round++) {
      upload = run;
      socket.write(putHead(200_000));
      socket.write(Buffer.alloc(100_000));
      const refused = answer();
      await eventually(() => exchanges.length).toBe(round * 2 + 1);
      socket.write(Buffer.alloc(100_000));
      expect((await refused).status).toBe(409);
      counted();
      socket.write(putHead(100_000));
      socket.write(pattern(0, 100_000));
      expect((await answer()).headers['x-ms-output']).toBe('100000');
    }
    expect(new Set(exchanges.map(({ request }) => request.socket)).size).toBe(1);
    socket.destroy();
  });

  it('is requested after the precheck, and never when the precheck fails', async () => {
    const seen = counted();
    const length = MIB;
    const { socket, answer } = rawClient(port);
    socket.write(putHead(length, { Expect: '100-continue' }));
    expect((await answer()).status).toBe(100);
    expect(seen.begun).toBe(1);
    socket.write(pattern(0, length));
    expect((await answer()).headers['x-ms-output']).toBe(String(length));
    precheck = () => Promise.reject(conflict());
    socket.write(putHead(length, { Expect: '100-continue' }));
    const { status, headers } = await answer();
    expect({ status, connection: headers.connection }).toEqual({ status: 409, connection: 'close' });
    expect(seen.begun).toBe(1);
    socket.destroy();
  });
});

describe('A streamed response', () => {
  it('is sent whole, with one line in the log when it has ended', async () => {
    const made = sources(5 * MIB + 1);
    const { socket, answer } = rawClient(port);
    socket.write(headOf('GET', URL));
    const { status, body } = await answer();
    expect(status).toBe(200);
    expect(Buffer.compare(body, pattern(0, 5 * MIB + 1))).toBe(0);
    expect(made).toMatchObject([{ ended: 1 }]);
    await expect
      .poll(() => logged)
      .toMatchObject([{ message: 'request', fields: { bytes: 5 * MIB + 1, status: 200 } }]);
    socket.destroy();
  });

  it('can be empty', async () => {
    const made = sources(0);
    const { socket, answer } = rawClient(port);
    socket.write(headOf('GET', URL) + headOf('GET', URL));
    expect(await answer()).toMatchObject({ status: 200, body: Buffer.alloc(0) });
    expect(await answer()).toMatchObject({ status: 200 });
    expect(made).toMatchObject([{ ended: 1 }, { ended: 1 }]);
    socket.destroy();
  });

  it('is pulled only as the client receives it', async () => {
    const length = 64 * MIB;
    const made = sources(length);
    const { socket, bytes, answer } = rawClient(port);
    socket.pause();
    socket.write(headOf('GET', URL));
    await eventually(() => exchanges[0]?.request.socket.writableLength ?? 0).toBeGreaterThan(0);
    await turns();
    expect(exchanges[0]!.request.socket.writableLength).toBeLessThanOrEqual(2 * PIECE);
    expect(made[0]!.pulled).toBeLessThan(length / 4);
    expect(bytes()).toBe(0);
    const { pulled } = made[0]!;
    await turns();
    expect(made[0]!.pulled).toBe(pulled);
    socket.resume();
    expect((await answer()).body.length).toBe(length);
    expect(made[0]!.ended).toBe(1);
    socket.destroy();
  });

  it('releases its source once when the client disconnects, at any point', async () => {
    const length = 16 * MIB;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: length }), fc.boolean(), async (taken, politely) => {
        const made = sources(length);
        const { socket, bytes } = rawClient(port);
        socket.on('data', () => bytes() >= taken && socket.pause());
        socket.write(headOf('GET', URL));
        await eventually(() => made.length === 1 && bytes() >= taken).toBe(true);
        if (politely) socket.destroy();
        else socket.resetAndDestroy();
        await eventually(() => made[0]?.ended).toBe(1);
      }),
      {
        numRuns: 20,
        examples: [
          [1, true],
          [1, false],
          [length, true],
        ],
      },
    );
    await eventually(() => exchanges.every(({ request }) => request.socket.destroyed)).toBe(true);
    expect(errorsLogged()).toEqual([]);
  });

  it('releases its source when the client disconnected before the first piece', async () => {
    const { opened, open } = gated();
    const made = sources(MIB, { gate: () => opened });
    const { socket } = rawClient(port);
    socket.write(headOf('GET', URL));
    await eventually(() => made[0]?.started).toBe(1);
    socket.resetAndDestroy();
    await eventually(() => exchanges[0]!.request.socket.destroyed).toBe(true);
    open();
    await eventually(() => made[0]!.ended).toBe(1);
    expect(errorsLogged()).toEqual([]);
  });

  it('to HEAD is released without being started', async () => {
    const made = sources(MIB);
    const { socket, answer } = rawClient(port);
    socket.write(headOf('HEAD', URL));
    expect(await answer('HEAD')).toMatchObject({ status: 200, headers: { 'content-length': String(MIB) } });
    socket.write('GET /small HTTP/1.1\r\nHost: x\r\n\r\n');
    expect((await answer()).body.toString()).toBe('small');
    expect(made).toMatchObject([{ started: 0, ended: 1 }]);
    socket.destroy();
  });

  it('is refused for good when its first piece is damaged, and is cut when a later one does', async () => {
    let made = sources(MIB, { failAt: 0 });
    const { socket, answer } = rawClient(port);
    socket.write(headOf('GET', URL));
    expect(await answer()).toMatchObject({ status: 409, headers: { 'x-ms-error-code': 'DataCorrupted' } });
    expect(made).toMatchObject([{ ended: 1 }]);
    expect(errorsLogged()).toMatchObject([
      { message: 'damaged bytes', fields: { err: { message: 'a checksum differs' } } },
    ]);

    made = sources(MIB, { failAt: 2 * PIECE });
    socket.write(headOf('GET', URL));
    await expect(answer()).rejects.toThrow('the connection ended');
    expect(made).toMatchObject([{ ended: 1 }]);
    expect(errorsLogged().at(-1)).toMatchObject({ message: 'answer cut: damaged bytes', fields: { bytes: 2 * PIECE } });
  });

  it.each([
    ['fewer', MIB, MIB - 1],
    ['more', MIB, MIB + 1],
  ])('is cut when it has %s bytes than it promised', async (_, promised, given) => {
    const source = sourceOf(given);
    download = () => ({ status: 200, headers: { 'Content-Length': promised }, body: source.stream });
    const { socket, answer, bytes } = rawClient(port);
    socket.write(`${headOf('GET', URL)}GET /small HTTP/1.1\r\nHost: x\r\n\r\n`);
    await answer().catch(() => {});
    await eventually(() => socket.destroyed).toBe(true);
    // The first response was complete; of the next one nothing was received.
    expect(bytes()).toBeLessThan(promised);
    await expect(answer()).rejects.toThrow();
    expect(source.ended).toBe(1);
    expect(errorsLogged()).toMatchObject([{ message: 'answer cut: bug' }]);
  });

  it.each([
    ['says nothing of its length', {}],
    ['has a header that HTTP cannot carry', { 'Content-Length': MIB, 'x-ms-odd': 'a\nb' }],
  ])('is a 500 and lets go when it %s', async (_, headers) => {
    const source = sourceOf(MIB);
    download = () => ({ status: 200, headers, body: source.stream });
    const { socket, answer } = rawClient(port);
    socket.write(headOf('GET', URL));
    expect((await answer()).status).toBe(500);
    expect(source.ended).toBe(1);
    socket.destroy();
  });

  it('is not interrupted by an error response when the client sends bytes that are not HTTP', async () => {
    const made = sources(64 * MIB);
    const { socket, bytes, answer } = rawClient(port);
    socket.pause();
    socket.write(headOf('GET', URL));
    await eventually(() => exchanges[0]?.request.socket.writableLength ?? 0).toBeGreaterThan(0);
    socket.write('what is not HTTP\r\n\r\n');
    await eventually(() => made[0]!.ended).toBe(1);
    socket.resume();
    await expect(answer()).rejects.toThrow('the connection ended');
    expect(bytes()).toBeLessThan(64 * MIB);
  });
});

describe('A connection', () => {
  it('carries pipelined streams and small responses in order', async () => {
    const made = sources(MIB);
    const seen = counted();
    const { socket, answer } = rawClient(port);
    const small = 'GET /small HTTP/1.1\r\nHost: x\r\n\r\n';
    const put = Buffer.concat([Buffer.from(putHead(100_000)), pattern(0, 100_000)]);
    const get = Buffer.from(headOf('GET', URL));
    for (let round = 0; round < 3; round++) {
      socket.write(Buffer.concat([put, get, Buffer.from(small), get, put, put, Buffer.from(small)]));
      const answers = [];
      for (let count = 0; count < 7; count++) answers.push(await answer());
      const what = answers.map(({ status, body }) => [status, body.length]);
      expect(what).toEqual([
        [201, 0],
        [200, MIB],
        [200, 5],
        [200, MIB],
        [201, 0],
        [201, 0],
        [200, 5],
      ]);
      expect(Buffer.compare(answers[1]!.body, pattern(0, MIB))).toBe(0);
      expect(Buffer.compare(answers[3]!.body, pattern(0, MIB))).toBe(0);
    }
    expect(seen).toMatchObject({ begun: 9, ended: 9, right: true });
    expect(made.map(({ ended }) => ended)).toEqual([1, 1, 1, 1, 1, 1]);
    expect(new Set(exchanges.map(({ request }) => request.socket)).size).toBe(1);
    socket.destroy();
  });

  it('is closed by the keep-alive timer when nothing follows a stream', async () => {
    counted();
    sources(MIB);
    const uploading = rawClient(port);
    uploading.socket.write(putHead(MIB));
    uploading.socket.write(pattern(0, MIB));
    await uploading.answer();
    const downloading = rawClient(port);
    downloading.socket.write(headOf('GET', URL));
    await downloading.answer();
    await eventually(() => logged.length).toBe(2);
    for (const { request } of exchanges) {
      expect(request.socket.timeout).toBeGreaterThan(0);
      expect(request.socket.timeout).toBeLessThan(10_000);
    }
    uploading.socket.destroy();
    downloading.socket.destroy();
  });

  it('with many pipelined streams holds a piece of one of them, and releases all when it is closed', async () => {
    const warnings: Error[] = [];
    const warned = (warning: Error) => warnings.push(warning);
    process.on('warning', warned);
    const made = sources(64 * MIB);
    const { socket } = rawClient(port);
    socket.pause();
    socket.write(headOf('GET', URL).repeat(30));
    await eventually(() => made.length).toBe(30);
    await eventually(() => exchanges[0]!.request.socket.writableLength).toBeGreaterThan(0);
    await turns();
    expect(made.map(({ started }) => started)).toEqual([1, ...Array(29).fill(0)]);
    socket.resetAndDestroy();
    await eventually(() => made.map(({ ended }) => ended)).toEqual(Array(30).fill(1));
    expect(errorsLogged()).toEqual([]);
    process.off('warning', warned);
    expect(warnings).toEqual([]);
  });

  it('is cut when its client is silent in the middle of a body', async () => {
    const impatient = start(50);
    const at = await impatient.listen(0, '127.0.0.1');
    const seen = counted();
    const uploading = rawClient(at);
    uploading.socket.write(putHead(MIB));
    uploading.socket.write(pattern(0, 1000));
    const small = rawClient(at);
    small.socket.write(putHead(10));
    small.socket.write('123');
    const made = sources(64 * MIB);
    const downloading = rawClient(at);
    downloading.socket.pause();
    downloading.socket.write(headOf('GET', URL));
    await eventually(() => seen.error).toBeInstanceOf(ClientDisconnected);
    await eventually(() => made[0]?.ended).toBe(1);
    await eventually(() => uploading.socket.destroyed && small.socket.destroyed).toBe(true);
    expect(errorsLogged()).toEqual([]);
    await impatient.close();
  });

  it('is not cut because the server is slow', async () => {
    const impatient = start(20);
    const at = await impatient.listen(0, '127.0.0.1');
    const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 100));
    upload = async (content) => {
      for await (const _ of content.bytes()) await pause();
      await pause();
    };
    sources(2 * PIECE, { gate: pause });
    const { socket, answer } = rawClient(at);
    socket.write(putHead(20_000));
    socket.write(Buffer.alloc(20_000));
    expect((await answer()).status).toBe(201);
    socket.write(headOf('GET', URL));
    expect((await answer()).body.length).toBe(2 * PIECE);
    socket.destroy();
    await impatient.close();
  });
});

describe('Closing', () => {
  it('lets running streams end', async () => {
    const closable = start();
    const at = await closable.listen(0, '127.0.0.1');
    const seen = counted();
    const made = sources(8 * MIB);
    const uploading = rawClient(at);
    uploading.socket.write(putHead(MIB));
    const downloading = rawClient(at);
    downloading.socket.pause();
    downloading.socket.write(headOf('GET', URL));
    await eventually(() => seen.begun + (made[0]?.started ?? 0)).toBe(2);
    const closed = closable.close();
    await turns();
    uploading.socket.write(pattern(0, MIB));
    expect(await uploading.answer()).toMatchObject({ status: 201, headers: { connection: 'close' } });
    downloading.socket.resume();
    expect((await downloading.answer()).body.length).toBe(8 * MIB);
    await closed;
    expect(made[0]!.ended).toBe(1);
  });

  it('cuts them after the grace time, and waits until they have released their resources', async () => {
    const closable = start();
    const at = await closable.listen(0, '127.0.0.1');
    const seen = counted();
    const read = upload;
    upload = (content) => read(content).finally(turns);
    const made = sources(64 * MIB);
    const uploading = rawClient(at);
    uploading.socket.write(putHead(MIB));
    const downloading = rawClient(at);
    downloading.socket.pause();
    downloading.socket.write(headOf('GET', URL));
    await eventually(() => seen.begun + (made[0]?.started ?? 0)).toBe(2);
    await closable.close(1);
    expect(seen).toMatchObject({ ended: 1, error: expect.any(ClientDisconnected) });
    expect(made[0]!.ended).toBe(1);
    expect(logged.filter(({ message }) => message === 'client went away').length).toBe(2);
  });
});
