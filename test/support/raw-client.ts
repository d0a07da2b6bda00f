/** For tests of a server with stub operations: a key, signatures, a recording log, and a client of plain bytes. */
import { createHmac } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { type Log, silentLog } from '../../src/base/log.ts';
import { sharedKeyStringToSign } from '../../src/rest/auth/shared-key.ts';
import { parseBlobPath } from '../../src/rest/blob/params.ts';
import type { Operation } from '../../src/rest/operation.ts';
import { errorReply } from '../../src/rest/reply.ts';
import type { ServiceDefinition } from '../../src/rest/service.ts';

export const ACCOUNT = 'devstoreaccount1';
export const KEY = Buffer.from('a key that is used in this test only').toString('base64');

const account = { id: 1n, name: ACCOUNT, keys: [KEY] };
export const testAccounts = { find: (name: string) => (name === ACCOUNT ? account : undefined) };

/** The Blob service with these operations instead of its own. */
export function serviceDefinition<Context>(table: readonly Operation<Context>[]): ServiceDefinition<Context> {
  return {
    service: 'blob',
    serverName: 'Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0',
    table,
    parsePath: parseBlobPath,
    errorReply,
  };
}

export interface LogLine {
  readonly level: string;
  readonly fields: Record<string, unknown>;
  readonly message: string;
}

export function logInto(lines: LogLine[]): Log {
  const write = (level: string) => (fields: Record<string, unknown>, message: string) =>
    lines.push({ level, fields, message });
  return {
    ...silentLog,
    isLevelEnabled: () => true,
    ...Object.fromEntries(['debug', 'info', 'warn', 'error'].map((level) => [level, write(level)])),
  } as unknown as Log;
}

export function signedHeaders(method: string, url: string, headers: Record<string, string>): Record<string, string> {
  const all: Record<string, string> = {
    'x-ms-date': new Date().toUTCString(),
    'x-ms-version': '2021-06-08',
    ...headers,
  };
  const lower = Object.fromEntries(Object.entries(all).map(([name, value]) => [name.toLowerCase(), value]));
  const [rawPath = '', rawQuery = ''] = url.split('?');
  const rawHeaders = Object.entries(all).flat();
  const text = sharedKeyStringToSign(ACCOUNT, { method, rawPath, rawQuery, headers: lower, rawHeaders });
  const signature = createHmac('sha256', Buffer.from(KEY, 'base64')).update(text).digest('base64');
  return { ...all, authorization: `SharedKey ${ACCOUNT}:${signature}` };
}

/** The head of a signed request, to be written to a socket. */
export function headOf(method: string, url: string, sent: Record<string, string> = {}): string {
  const headers = Object.entries(signedHeaders(method, url, sent)).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${url} HTTP/1.1\r\nHost: x\r\n${headers.join('')}\r\n`;
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface RawClient {
  readonly socket: Socket;
  /** The number of bytes that were received and are not part of an answer yet. */
  bytes(): number;
  /** The next answer; its body has the length of Content-Length, except after HEAD. */
  answer(method?: string): Promise<RawAnswer>;
}

/** Receives continuously, unless the socket is paused. */
export function rawClient(port: number): RawClient {
  const socket = connect(port, '127.0.0.1');
  let chunks: Buffer[] = [];
  let length = 0;
  let wake = () => {};
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    wake();
  });
  socket.on('error', () => {});
  socket.on('close', () => wake());

  async function received(isEnough: () => boolean): Promise<void> {
    while (!isEnough()) {
      if (socket.destroyed) throw new Error('the connection ended');
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  function consume(bytes: number): Buffer {
    const all = Buffer.concat(chunks);
    chunks = [all.subarray(bytes)];
    length = all.length - bytes;
    return all.subarray(0, bytes);
  }

  return {
    socket,
    bytes: () => length,
    async answer(method = 'GET') {
      let end = -1;
      await received(() => {
        if (chunks.length > 1) chunks = [Buffer.concat(chunks)];
        end = chunks[0]?.indexOf('\r\n\r\n') ?? -1;
        return end >= 0;
      });
      const [status = '', ...lines] = consume(end + 4)
        .toString('latin1')
        .trim()
        .split('\r\n');
      const headers = Object.fromEntries(
        lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
      );
      const bodyLength = method === 'HEAD' ? 0 : Number(headers['content-length'] ?? 0);
      await received(() => length >= bodyLength);
      return { status: Number(status.split(' ')[1]), headers, body: consume(bodyLength) };
    },
  };
}
