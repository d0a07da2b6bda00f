import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  headOf,
  type LogLine,
  logInto,
  rawClient,
  serviceDefinition,
  signedHeaders,
  testAccounts,
} from '../../../test/support/raw-client.ts';
import { ticksFromUnix } from '../../base/time.ts';
import { Unavailable } from '../../partition/partition.ts';
import { StorageError } from '../../services/common/errors.ts';
import { notImplementedOperation, operationOn } from '../operation.ts';
import { contentBody, header, metadata, pathPart, xmlBody } from '../params.ts';
import { createRestServer, type RestServer } from './server.ts';

const logged: LogLine[] = [];
const log = logInto(logged);

const operation = operationOn<{ account: string }>();
let release = () => {};
let looks = 0;
let turn = 0;
const table = [
  operation({
    name: 'Get Blob',
    route: 'GET|HEAD /{container}/{blob}',
    permission: 'read',
    test: 'none',
    input: { blob: pathPart(1), header: header('x-ms-odd') },
    run: async (_storage, { blob }) => {
      if (blob === 'bug') throw new TypeError('undefined is not a function');
      if (blob === 'gone') throw new StorageError('BlobNotFound', 404, 'The specified blob does not exist.');
      if (blob === 'full') throw new Unavailable('The disk is full.');
      if (blob === 'turn') return String(turn);
      if (blob === 'slow') await new Promise<void>((resolve) => (release = resolve));
      return blob;
    },
    reply: (blob) => ({
      status: 200,
      headers: { 'x-ms-name': blob === 'unsendable' ? 'a\nb' : 'x', ETag: undefined },
      body: `[${blob}]`,
    }),
  }),
  operation({
    name: 'Put Blob',
    route: 'PUT /{container}/{blob}',
    permission: 'write',
    test: 'none',
    input: { body: contentBody({ bytesMax: 1024 * 1024 }), metadata },
    precheck: async () => {
      looks++;
    },
    run: async (_storage, { body }) => {
      let length = 0;
      for await (const chunk of body.bytes()) length += chunk.length;
      return length;
    },
    reply: (length) => ({ status: 201, headers: { 'x-ms-length': length } }),
  }),
  operation({
    name: 'Set Document',
    route: 'PUT /{container}',
    query: { restype: 'container' },
    permission: 'write',
    test: 'none',
    input: { document: xmlBody('Document') },
    run: async (storage, { document }) => `${storage.account} ${document?.name}`,
    reply: (output) => ({ status: 200, body: output }),
  }),
  notImplementedOperation<{ account: string }>('Set Blob Tier', 'PUT /{container}/{blob}', { comp: 'tier' }),
];

let server: RestServer;
let port: number;

function start(): RestServer {
  return createRestServer({
    definition: serviceDefinition(table),
    accounts: testAccounts,
    access: async () => undefined,
    context: ({ name }) => ({ account: name }),
    log,
    now: () => ticksFromUnix(Date.now()),
    managementEndpoints: {
      'POST /_holdfast/reset': async ({ query }) => ({ status: 200, body: `reset ${query.hard}` }),
    },
  });
}

beforeAll(async () => {
  server = start();
  port = await server.listen(0, '127.0.0.1');
});
afterAll(() => server.close());

interface Answer {
  status: number;
  reason: string;
  headers: IncomingHttpHeaders;
  body: string;
}

function ask(
  method: string,
  url: string,
  headers: Record<string, string> = {},
  body?: string | Buffer,
  to = port,
): Promise<Answer> {
  return send(
    method,
    url,
    signedHeaders(method, url, { ...(body !== undefined && { 'Content-Length': String(body.length) }), ...headers }),
    body,
    to,
  );
}

function send(
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: string | Buffer,
  to = port,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port: to, method, path, headers }, async (response) => {
      const answer = await textOf(response);
      resolve({
        status: response.statusCode!,
        reason: response.statusMessage!,
        headers: response.headers,
        body: answer,
      });
    });
    request.on('error', reject);
    request.end(body);
  });
}

const BLOB = '/devstoreaccount1/c/b';

describe('every response', () => {
  it('has request id, date, server, version and client request id', async () => {
    const { status, headers, body } = await ask('GET', BLOB, { 'x-ms-client-request-id': 'mine' });
    expect({ status, body }).toEqual({ status: 200, body: '[b]' });
    expect(headers).toMatchObject({
      server: 'Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0',
      'x-ms-version': '2021-06-08',
      'x-ms-client-request-id': 'mine',
      'content-length': '3',
    });
    expect(headers['x-ms-request-id']).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(Math.abs(Date.parse(headers.date!) - Date.now())).toBeLessThan(5_000);
    expect(headers).not.toHaveProperty('etag');
  });

  it('does not echo a client id of more than 1 KiB', async () => {
    expect((await ask('GET', BLOB, { 'x-ms-client-request-id': 'x'.repeat(1025) })).headers).not.toHaveProperty(
      'x-ms-client-request-id',
    );
  });

  it('to HEAD has the headers of GET and no body', async () => {
    const { status, headers, body } = await ask('HEAD', BLOB);
    expect({ status, body, length: headers['content-length'] }).toEqual({ status: 200, body: '', length: '3' });
  });

  it('is logged in one line at debug', async () => {
    const { headers } = await ask('GET', BLOB);
    const lines = logged.filter(({ fields }) => fields.requestId === headers['x-ms-request-id']);
    expect(lines).toMatchObject([
      { level: 'debug', fields: { operation: 'Get Blob', status: 200, method: 'GET', url: BLOB } },
    ]);
  });
});

describe('requests that arrive in one turn of the event loop', () => {
  /** The number of turns in which three requests run that are sent in one write. */
  async function turnsOfThree(sent: Record<string, string>): Promise<number> {
    let counting = setImmediate(function count() {
      turn++;
      counting = setImmediate(count);
    });
    const { socket, answer } = rawClient(port);
    socket.write(headOf('GET', '/devstoreaccount1/c/turn', sent).repeat(3));
    const answers = [await answer(), await answer(), await answer()];
    socket.destroy();
    clearImmediate(counting);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    return new Set(answers.map(({ body }) => String(body))).size;
  }

  it('run together, which costs less', async () => {
    expect(await turnsOfThree({})).toBe(1);
  });

  it('run one per turn if their heads are large, so that other requests run between them', async () => {
    expect(await turnsOfThree({ 'x-ms-meta-a': 'a'.repeat(9 << 10) })).toBe(3);
  });
});

describe('an error response', () => {
  it('is XML with code, request id and time', async () => {
    const { status, reason, headers, body } = await ask('GET', '/devstoreaccount1/c/gone');
    expect({ status, reason }).toEqual({ status: 404, reason: 'The specified blob does not exist.' });
    expect(headers).toMatchObject({ 'x-ms-error-code': 'BlobNotFound', 'content-type': 'application/xml' });
    expect(body).toContain(
      `<Code>BlobNotFound</Code><Message>The specified blob does not exist.\nRequestId:${headers['x-ms-request-id']}\nTime:`,
    );
    expect((await ask('HEAD', '/devstoreaccount1/c/gone')).body).toBe('');
  });

  it('has Retry-After when the store is unavailable', async () => {
    const { status, headers, body } = await ask('GET', '/devstoreaccount1/c/full');
    expect(status).toBe(503);
    expect(headers).toMatchObject({ 'x-ms-error-code': 'ServerBusy', 'retry-after': '1' });
    expect(body).toContain('The disk is full.');
  });

  it('of a bug is logged with its stack and shows none', async () => {
    for (const name of ['bug', 'unsendable']) {
      const { status, headers, body } = await ask('GET', `/devstoreaccount1/c/${name}`);
      expect(status).toBe(500);
      expect(headers['x-ms-error-code']).toBe('InternalError');
      expect(body).not.toMatch(/function|server\.ts|unsendable/);
      const line = logged.find(
        ({ level, fields }) => level === 'error' && fields.requestId === headers['x-ms-request-id'],
      );
      expect(line!.fields).toHaveProperty('err.stack', expect.stringContaining('.ts'));
    }
  });

  it('names the candidates when the account is unknown', async () => {
    const { status, body } = await ask('GET', '/nobody/c/b');
    expect(status).toBe(400);
    expect(body).toMatch(/InvalidUri.*nobody/s);
  });

  it('names an operation that is not implemented', async () => {
    const { status, body } = await ask('PUT', `${BLOB}?comp=tier`, {}, '');
    expect(status).toBe(501);
    expect(body).toMatch(/Set Blob Tier.*docs\/operations\.md/);
  });

  it('is for the wrong signature before anything else', async () => {
    const headers = signedHeaders('GET', '/devstoreaccount1/c/other', {});
    expect((await send('GET', '/devstoreaccount1/c/bug', headers)).status).toBe(403);
  });

  it('is sent for a malformed version, and not for a newer one', async () => {
    expect((await ask('GET', BLOB, { 'x-ms-version': 'newest' })).body).toContain(
      '<HeaderName>x-ms-version</HeaderName>',
    );
    expect((await ask('GET', BLOB, { 'x-ms-version': '2099-01-01' })).headers['x-ms-version']).toBe('2099-01-01');
  });
});

describe('a body', () => {
  it('is read to its end', async () => {
    const { status, headers } = await ask('PUT', BLOB, {}, Buffer.alloc(300_000));
    expect({ status, length: headers['x-ms-length'] }).toEqual({ status: 201, length: '300000' });
    expect((await ask('PUT', '/devstoreaccount1/c?restype=container', {}, '<Document/>')).body).toBe(
      'devstoreaccount1 Document',
    );
  });

  it('must have a declared length', async () => {
    const { status, headers } = await ask('PUT', BLOB, { 'Transfer-Encoding': 'chunked' });
    expect({ status, code: headers['x-ms-error-code'] }).toEqual({ status: 411, code: 'MissingContentLengthHeader' });
  });

  it('that is too large is refused, and the error reaches a client that reads only after it has sent everything', async () => {
    const length = 8 * 1024 * 1024;
    const socket = connect(port, '127.0.0.1');
    socket.write(headOf('PUT', BLOB, { 'Content-Length': String(length) }));
    await new Promise((resolve) => socket.write(Buffer.alloc(length), resolve));
    const answer = await textOf(socket);
    expect(answer).toMatch(/^HTTP\/1.1 413 .*x-ms-error-code: RequestBodyTooLarge\r\n/s);
    expect(answer).toContain('Connection: close\r\n');
  });

  it('that is small and refused leaves the connection usable', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports: (number | undefined)[] = [];
    for (let round = 0; round < 3; round++) {
      const url = `${BLOB}?comp=tier`;
      const headers = signedHeaders('PUT', url, { 'Content-Length': '100000' });
      await new Promise<void>((resolve) => {
        const request = httpRequest(
          { host: '127.0.0.1', port, method: 'PUT', path: url, headers, agent },
          async (response) => {
            ports.push(response.socket.localPort);
            await textOf(response);
            resolve();
          },
        );
        request.end(Buffer.alloc(100_000));
      });
    }
    expect(new Set(ports).size).toBe(1);
    agent.destroy();
  });

  it('that waits for 100 Continue is requested after the precheck, and not after an error', async () => {
    const asked = async (length: number): Promise<string> => {
      const socket = connect(port, '127.0.0.1');
      socket.write(headOf('PUT', BLOB, { 'Content-Length': String(length), Expect: '100-continue' }));
      socket.once('data', (first) => {
        if (first.toString().startsWith('HTTP/1.1 100')) socket.write('x'.repeat(length));
      });
      let answer = '';
      for await (const piece of socket) {
        answer += piece;
        if (/HTTP\/1.1 [2-5]/.test(answer)) break;
      }
      return answer;
    };
    looks = 0;
    expect(await asked(5)).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 201 Created/);
    expect(looks).toBe(1);
    expect(await asked(5_000_000)).toMatch(/^HTTP\/1.1 413 .*Connection: close/s);
  });

  it('that does not wait for 100 Continue is read after the precheck', async () => {
    const { socket, answer } = rawClient(port);
    looks = 0;
    for (let turn = 1; turn <= 2; turn++) {
      socket.write(`${headOf('PUT', BLOB, { 'Content-Length': '5', Expect: '100-continue' })}hello`);
      expect([(await answer('HEAD')).status, (await answer()).status]).toEqual([100, 201]);
      expect(looks).toBe(turn);
    }
    socket.destroy();
  });

  it('that breaks off ends the request without a response', async () => {
    const before = logged.length;
    const socket = connect(port, '127.0.0.1');
    socket.write(`${headOf('PUT', BLOB, { 'Content-Length': '100' })}part`, () => socket.destroy());
    await expect.poll(() => logged.slice(before).map(({ message }) => message)).toContain('client went away');
    expect(logged.slice(before).filter(({ level }) => level === 'error')).toEqual([]);
  });
});

describe('a refused caller', () => {
  const lines = (from: number) => logged.slice(from).filter(({ message }) => message === 'refused');

  it('is in the log once per second, with the signature redacted', async () => {
    const before = logged.length;
    for (const name of ['sig', 'SIG', '%73ig', 's%49g', '%73%69%67']) {
      await send('GET', `${BLOB}?sv=2020-02-10&sr=b&${name}=SECRET`, {});
    }
    expect(lines(before).length).toBeLessThanOrEqual(2);
    expect(JSON.stringify(logged.slice(before))).not.toContain('SECRET');
    expect(JSON.stringify(logged.slice(before))).toContain('sr=b');
  });
});

describe('the management endpoints', () => {
  it('need no signature', async () => {
    expect(await send('GET', '/health/live', {})).toMatchObject({ status: 200, body: 'live\n' });
    expect(await send('GET', '/health/ready', {})).toMatchObject({ status: 200, body: 'ready\n' });
    expect(await send('POST', '/_holdfast/reset?hard=yes', {})).toMatchObject({ status: 200, body: 'reset yes' });
    expect((await send('GET', '/_holdfast/reset', {})).status).toBe(400);
  });
});

describe('closing', () => {
  it('finishes running requests, accepts no new ones, and does not wait for idle connections', async () => {
    const closable = start();
    const at = await closable.listen(0, '127.0.0.1');
    await ask('GET', BLOB, {}, undefined, at);
    release = () => {};
    const before = release;
    const running = ask('GET', '/devstoreaccount1/c/slow', {}, undefined, at);
    await expect.poll(() => release !== before).toBe(true);
    const closed = closable.close();
    await expect(ask('GET', BLOB, {}, undefined, at)).rejects.toThrow();
    release();
    expect(await running).toMatchObject({ status: 200, body: '[slow]', headers: { connection: 'close' } });
    await closed;
  });

  it('cuts the remaining connections after the grace time', async () => {
    const closable = start();
    const at = await closable.listen(0, '127.0.0.1');
    const before = release;
    const running = ask('GET', '/devstoreaccount1/c/slow', {}, undefined, at);
    const outcome = running.catch((error: NodeJS.ErrnoException) => error.code);
    await expect.poll(() => release !== before).toBe(true);
    await closable.close(1);
    expect(await outcome).toBe('ECONNRESET');
    release();
  });
});

describe('any bytes', () => {
  async function statusOf(bytes: Buffer): Promise<number | undefined> {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.end(bytes);
    const answer = await textOf(socket).catch(() => '');
    return answer === '' ? undefined : Number(/^HTTP\/1.1 (\d{3})/.exec(answer)?.[1]);
  }

  it('in place of a request get a well-formed 4xx or nothing', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1 }), async (bytes) => {
        const status = await statusOf(Buffer.concat([bytes, Buffer.from('\r\n\r\n')]));
        expect(status === undefined || (status >= 400 && status < 500)).toBe(true);
      }),
      { numRuns: 50 },
    );
    expect(await statusOf(Buffer.from(`GET / HTTP/1.1\r\nHost: x\r\nx-ms-long: ${'x'.repeat(70_000)}\r\n\r\n`))).toBe(
      431,
    );
  });

  it('in path, query, headers and XML of a signed request get a well-formed 4xx', async () => {
    const junk = fc.string({
      unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
      maxLength: 30,
    });
    const places = fc.constantFrom(
      'x-ms-version',
      'x-ms-content-crc64',
      'content-md5',
      'if-match',
      'if-modified-since',
    );
    await fc.assert(
      fc.asyncProperty(
        junk,
        junk,
        places,
        junk,
        fc.uint8Array({ minLength: 1 }),
        async (path, query, name, value, xml) => {
          const before = logged.length;
          const url = `/devstoreaccount1/${path.replace(/[?#]/g, '%')}?restype=container&x=${query.replace('#', '%')}`;
          const { status } = await ask('PUT', url, { [name]: value }, Buffer.from(xml));
          expect(status).toBeGreaterThanOrEqual(400);
          expect(status).toBeLessThan(500);
          expect(logged.slice(before).filter(({ level }) => level === 'error')).toEqual([]);
        },
      ),
      { numRuns: 100 },
    );
  });
});
