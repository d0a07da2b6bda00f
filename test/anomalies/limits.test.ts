/** Limits on connections, memory and pipelining, and what an answer never reveals. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { blobOperations } from '../../src/rest/blob/operations.ts';
import { ByteBudget } from '../../src/rest/http/byte-budget.ts';
import { ACCOUNT, headOf, rawClient } from '../support/raw-client.ts';
import { smallServer } from '../support/stub-server.ts';
import { account, serverFor } from '../support/test-server.ts';

const url = (blob: string) => `/${ACCOUNT}/c/${blob}`;
const eventually = <Value>(value: () => Value) => expect.poll(value, { interval: 5, timeout: 20_000 });
const BUSY = { status: 503, headers: { 'x-ms-error-code': 'ServerBusy', 'retry-after': '1' } };

describe('Connections', () => {
  it('beyond a number are closed, and the others go on', async () => {
    const { port } = await smallServer({ limits: { connectionsMax: 3 } });
    const clients = [rawClient(port), rawClient(port), rawClient(port)];
    for (const { socket } of clients) await once(socket, 'connect');
    const further = rawClient(port);
    await once(further.socket, 'close');
    for (const { socket, answer } of clients) {
      socket.write(headOf('GET', url('b')));
      expect((await answer()).status).toBe(200);
    }
    clients[0]!.socket.destroy();
    await expect
      .poll(
        async () => {
          const { socket, answer } = rawClient(port);
          socket.write(headOf('GET', url('b')));
          return answer().then(
            () => socket.destroy() && 'served',
            () => 'closed',
          );
        },
        { timeout: 20_000 },
      )
      .toBe('served');
  });
});

describe('Requests that run at once', () => {
  it('beyond a number are refused with 503 ServerBusy and Retry-After, and the others go on', async () => {
    const { port, gate } = await smallServer({ limits: { runningMax: 3 } });
    const running = [1, 2, 3].map(() => rawClient(port));
    for (const { socket } of running) socket.write(headOf('GET', url('wait')));
    await eventually(() => gate.waiting).toBe(3);
    const { socket, answer } = rawClient(port);
    socket.write(headOf('GET', url('b')));
    expect(await answer()).toMatchObject(BUSY);
    gate.open();
    for (const one of running) expect((await one.answer()).status).toBe(200);
    socket.write(headOf('GET', url('b')));
    expect((await answer()).status).toBe(200);
  });

  it('do not include those with a body in transit', async () => {
    const { port } = await smallServer({ limits: { runningMax: 3 } });
    const document = headOf('PUT', `/${ACCOUNT}/c`, { 'Content-Length': '100' });
    const content = headOf('PUT', url('b'), { 'Content-Length': '100000' });
    for (let at = 0; at < 5; at++) rawClient(port).socket.write(`${document}<Docu`);
    for (let at = 0; at < 5; at++) rawClient(port).socket.write(`${content}some`);
    const { socket, answer } = rawClient(port);
    for (let round = 0; round < 20; round++) {
      socket.write(headOf('GET', url('b')));
      expect((await answer()).status).toBe(200);
    }
  });
});

describe('Bodies in memory', () => {
  it('beyond a number of bytes hold further ones off, in both directions, until they are gone', async () => {
    const { port, gate } = await smallServer({ limits: { bodyBytesMax: 100_000 } });
    const stuck = rawClient(port);
    stuck.socket.write(headOf('PUT', url('stuck'), { 'Content-Length': '400000' }));
    stuck.socket.write(Buffer.alloc(400_000));
    const ask = async (head: string, body = '') => {
      const { socket, answer } = rawClient(port);
      socket.write(head + body);
      const { status, headers } = await answer('HEAD');
      socket.destroy();
      return { status, headers };
    };
    const upload = () => ask(headOf('PUT', url('b'), { 'Content-Length': '50000' }), 'x'.repeat(50_000));
    await expect.poll(upload, { timeout: 20_000 }).toMatchObject(BUSY);
    expect(await ask(headOf('GET', url('stream')))).toMatchObject(BUSY);
    expect((await ask(headOf('GET', url('b')))).status).toBe(200);
    gate.open();
    expect((await stuck.answer()).status).toBe(201);
    expect((await upload()).status).toBe(201);
    expect((await ask(headOf('GET', url('stream')))).status).toBe(200);
  });

  it('are released with their connections, and when the rest of a body is discarded', async () => {
    const { port, gate } = await smallServer({ limits: { bodyBytesMax: 100_000 } });
    const refused = rawClient(port);
    refused.socket.write(headOf('PUT', url('refused'), { 'Content-Length': '400000' }));
    refused.socket.write(Buffer.alloc(400_000));
    for (let round = 0; round < 3; round++) {
      const stuck = rawClient(port);
      stuck.socket.write(headOf('PUT', url('stuck'), { 'Content-Length': '400000' }));
      stuck.socket.write(Buffer.alloc(200_000));
      await eventually(() => stuck.socket.writableLength).toBe(0);
      stuck.socket.destroy();
      const unread = rawClient(port);
      unread.socket.pause();
      unread.socket.write(headOf('GET', url('stream')));
      await once(unread.socket, 'connect');
      unread.socket.destroy();
    }
    gate.open();
    expect((await refused.answer()).status).toBe(409);
    const { socket, answer } = rawClient(port);
    await expect
      .poll(
        async () => {
          socket.write(headOf('PUT', url('b'), { 'Content-Length': '50000' }));
          socket.write(Buffer.alloc(50_000));
          return (await answer()).status;
        },
        { timeout: 20_000 },
      )
      .toBe(201);
  });
});

describe('Bodies that are buffered', () => {
  it('count with all that they will be from their beginning, however many begin at once, and the others wait', async () => {
    const bound = 1_000_000;
    const length = 100_000;
    const budget = new ByteBudget(bound);
    const { port } = await smallServer({ budget });
    const document = `<Document>${' '.repeat(length - 21)}</Document>`;
    const head = headOf('PUT', `/${ACCOUNT}/c`, { 'Content-Length': String(length) });
    const clients = Array.from({ length: 40 }, () => rawClient(port));
    for (const { socket } of clients) socket.write(head + document.slice(0, -1));
    // Three quarters of the bound.
    await eventually(() => budget.bytesUsed()).toBe(7 * length);
    const small = rawClient(port);
    small.socket.write(headOf('PUT', `/${ACCOUNT}/c`, { 'Content-Length': '21' }));
    small.socket.write('<Document></Document>');
    expect((await small.answer()).status).toBe(200);
    expect(budget.bytesUsed()).toBe(7 * length);
    for (const { socket } of clients) socket.write('>');
    for (const { answer } of clients) expect((await answer()).status).toBe(200);
    expect(budget.bytesUsed()).toBe(0);
  });

  it('are forgotten with their connections', async () => {
    const budget = new ByteBudget(1_000_000);
    const { port } = await smallServer({ budget });
    const clients = Array.from({ length: 40 }, () => rawClient(port));
    for (const { socket } of clients)
      socket.write(`${headOf('PUT', `/${ACCOUNT}/c`, { 'Content-Length': '100000' })}<Doc`);
    await eventually(() => budget.bytesUsed()).toBe(700_000);
    for (const { socket } of clients) socket.destroy();
    await eventually(() => budget.bytesUsed()).toBe(0);
  });
});

describe('Answers that the client does not read', () => {
  const MIB = 1 << 20;

  /** The most that was ever counted, too. */
  function watchedBudget(bytesMax: number) {
    const budget = new ByteBudget(bytesMax);
    const seen = { most: 0 };
    const add = budget.add.bind(budget);
    budget.add = (bytes, isReadAhead) => {
      add(bytes, isReadAhead);
      seen.most = Math.max(seen.most, budget.bytesUsed());
    };
    return { budget, seen };
  }

  it.each(['whole', 'made'])('count with all that is made of them (%s), and others are not made', async (kind) => {
    const bound = 64 * MIB;
    const { budget, seen } = watchedBudget(bound);
    const { port } = await smallServer({ budget });
    const clients = Array.from({ length: 20 }, () => rawClient(port));
    for (const { socket } of clients) {
      socket.pause();
      socket.write(headOf('GET', `${url(kind)}?comp=page`));
    }
    await eventually(() => budget.bytesUsed()).toBeGreaterThan(bound / 2);
    let answered = 0;
    for (const { socket, answer } of clients) {
      socket.resume();
      const { status } = kind === 'whole' ? await answer() : await chunkedEnd(socket);
      if (status === 200) answered++;
    }
    expect(answered).toBe(clients.length);
    expect(seen.most).toBeLessThanOrEqual(bound);
    await eventually(() => budget.bytesUsed()).toBe(0);
  });

  /** Until its last chunk has come. */
  async function chunkedEnd(socket: Socket): Promise<{ status: number }> {
    let tail = '';
    let status = 0;
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
      if (status === 0) status = Number(String(chunk.subarray(9, 12)));
      tail = (tail + chunk.subarray(-5).toString('latin1')).slice(-5);
      if (tail === '0\r\n\r\n') break;
    }
    return { status };
  }

  it('are refused to further readers while they lie there, and are forgotten with their connections', async () => {
    const { budget } = watchedBudget(MIB);
    const { port } = await smallServer({ budget });
    const stuck = rawClient(port);
    stuck.socket.pause();
    stuck.socket.write(headOf('GET', url('whole')));
    await eventually(() => budget.bytesUsed()).toBeGreaterThan(32 * MIB);
    const { socket, answer } = rawClient(port);
    socket.write(headOf('GET', url('whole')));
    expect(await answer()).toMatchObject(BUSY);
    socket.write(headOf('GET', url('b')));
    expect((await answer()).status).toBe(200);
    stuck.socket.destroy();
    await eventually(() => budget.bytesUsed()).toBe(0);
  });
});

describe('Uploads that begin at once', () => {
  const UPLOADS = 200;
  const BYTES = 1 << 20;
  const TURN_BYTES = 2 << 20;
  const PIECE_BYTES = 64 << 10;

  it('are read round-robin, so that a new request waits for few bytes, and leave nothing in memory', async () => {
    const budget = new ByteBudget(512 << 20);
    let most = 0;
    let now = 0;
    let isOver = false;
    const chargeRead = budget.chargeRead.bind(budget);
    budget.chargeRead = (bytes) => {
      now += bytes;
      most = Math.max(most, now);
      return chargeRead(bytes);
    };
    const nextTurn = () => {
      now = 0;
      if (!isOver) setImmediate(nextTurn);
    };
    nextTurn();
    const { port, gate } = await smallServer({ budget });
    const clients = Array.from({ length: UPLOADS }, () => rawClient(port));
    const stalled = rawClient(port);
    stalled.socket.write(headOf('PUT', url('stuck'), { 'Content-Length': String(2 * BYTES) }));
    stalled.socket.write(Buffer.alloc(BYTES));
    for (const { socket } of clients) {
      socket.write(headOf('PUT', url('b'), { 'Content-Length': String(BYTES) }));
      socket.write(Buffer.alloc(BYTES));
    }
    for (const { answer } of clients) expect((await answer()).status).toBe(201);
    isOver = true;
    expect(most).toBeGreaterThan(PIECE_BYTES);
    // Two samples may fall into one tick, and each stream ends with a chunk. All at once would be six times as much.
    expect(most).toBeLessThanOrEqual(3 * TURN_BYTES);
    await eventually(() => budget.bytesUsed()).toBeGreaterThan(0);
    stalled.socket.destroy();
    gate.open();
    await eventually(() => budget.bytesUsed()).toBe(0);
  });
});

describe('Pipelined requests', () => {
  it('are answered in their order, and no more of them are started than a few reads hold', async () => {
    const { port, gate } = await smallServer();
    const { socket, answer } = rawClient(port);
    const count = 3_000;
    for (let at = 0; at < count; at++) socket.write(headOf('GET', url(`wait-${at}`)));
    await eventually(() => gate.waiting).toBeGreaterThanOrEqual(256);
    gate.open();
    for (let at = 0; at < count; at++) expect((await answer()).headers['x-ms-name']).toBe(`wait-${at}`);
    expect(gate.most).toBeLessThan(1_000);
    socket.destroy();
  });

  it('are cut when thousands come in one piece', async () => {
    const { port } = await smallServer();
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nHost:x\r\n\r\n'.repeat(5_000));
    expect(await textOf(socket).catch(() => '')).toBe('');
    const other = rawClient(port);
    other.socket.write(headOf('GET', url('b')));
    expect((await other.answer()).status).toBe(200);
    other.socket.destroy();
  });

  it('are answered up to the first that is refused for its form, and no further', async () => {
    const { port } = await smallServer();
    const socket = connect(port, '127.0.0.1');
    const good = headOf('GET', url('b'));
    socket.write(`${good}${good}GET / HTTP/1.1\r\n\r\n${good}`);
    const statuses = [...(await textOf(socket)).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => code);
    expect(statuses).toEqual(['200', '200', '400']);
  });
});

describe('An answer to HEAD', () => {
  const running = serverFor('memory');

  /** Everything that comes until the server closes. */
  async function answerOf(path: string, headers: Record<string, string> = {}): Promise<string> {
    const socket = running.socket();
    socket.write(running.head('HEAD', path, { Connection: 'close', ...headers }));
    return await textOf(socket);
  }

  it('has no body, whatever the operation, and whether it is refused or not', async () => {
    const container = await running.newContainer();
    await container.getBlockBlobClient('blob').upload('content', 7);
    const seen = new Set<string>();
    for (const { shape, query = {}, when = {} } of blobOperations) {
      for (const [c, b] of [
        [container.containerName, 'blob'],
        [container.containerName, 'absent'],
        ['absent', 'absent'],
        ['Not$Valid', '%00'],
      ] as const) {
        const path = shape.replace('{container}', c).replace('{blob}', b);
        const words = Object.entries(query).map(([name, value]) => `${name}=${value === true ? 'x' : value}`);
        const headers = Object.fromEntries(
          Object.entries(when).map(([name, value]) => [name, value === true ? 'x' : value]),
        );
        const answer = await answerOf(`${path}${words.length > 0 ? `?${words.join('&')}` : ''}`, headers);
        const [head = '', ...rest] = answer.split('\r\n\r\n');
        expect({ path, rest }).toEqual({ path, rest: [''] });
        seen.add(head.slice(9, 12));
      }
    }
    for (const path of ['/', '/c/b?comp=nonsense', '/c?restype=container&timeout=x']) {
      expect((await answerOf(path, { 'x-ms-version': 'x' })).split('\r\n\r\n')[1]).toBe('');
    }
    expect([...seen].sort()).toEqual(expect.arrayContaining(['200', '400', '404']));
  });
});

describe('A refusal', () => {
  const running = serverFor('LMDB');
  const LEAKS =
    /\bat (?:\/|file:|async |Object\.|new )|node:|\.ts\b|\.js\b|node_modules|\/(?:src|dist|home|root|tmp|usr|var)\//;

  it('shows neither a stack nor a path of the machine', async () => {
    const container = (await running.newContainer()).containerName;
    const junk = ['', 'x', '-1', '%', '%zz', '%00', '../../etc/passwd', '\u007f', '9'.repeat(400), '\'"<>&'];
    const places = [
      'comp',
      'restype',
      'timeout',
      'marker',
      'maxresults',
      'include',
      'blockid',
      'snapshot',
      'sig',
      'sv',
      'se',
    ];
    const headers = [
      'x-ms-version',
      'x-ms-date',
      'Range',
      'If-Match',
      'If-Modified-Since',
      'x-ms-lease-id',
      'Content-MD5',
    ];
    const more = ['x-ms-blob-type', 'x-ms-copy-source', 'x-ms-lease-action', 'x-ms-meta-', 'Authorization', 'Origin'];
    const codes = new Set<string>();
    const look = async (method: string, path: string, sent: Record<string, string>, body?: string) => {
      const answer = await running.request(method, path, { headers: sent, ...(body !== undefined && { body }) });
      const all = `${answer.reason}\n${answer.rawHeaders.join('\n')}\n${answer.text}`;
      expect(all.replaceAll('../../etc/passwd', '')).not.toMatch(LEAKS);
      expect(answer.status).not.toBe(500);
      if (answer.status >= 400) codes.add(String(answer.headers['x-ms-error-code']));
    };
    for (const method of ['GET', 'PUT', 'DELETE', 'POST']) {
      for (const value of junk) {
        const encoded = value.replace(/[^!-~]|[<>"]/g, '');
        for (const name of places) await look(method, `/${container}/blob?${name}=${encoded}`, {});
        for (const name of [...headers, ...more]) {
          if (/^[ -~]*$/.test(value)) await look(method, `/${container}/blob`, { [name]: value });
        }
      }
    }
    for (const body of junk) await look('PUT', `/${container}/blob?comp=blocklist`, {}, body);
    for (const body of junk) await look('PUT', '/?restype=service&comp=properties', {}, body);
    expect(codes.size).toBeGreaterThan(7);
  }, 120_000);

  it('to bytes that are no HTTP reveals nothing else', async () => {
    const socket = running.socket();
    socket.end(`nonsense /${account} HTTP/1.1\r\n\r\n`);
    expect(await textOf(socket)).toBe('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
  });
});
