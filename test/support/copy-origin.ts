/** Another server that copies read from: its resources change, stall, fail and redirect as a test wants. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Resource {
  readonly bytes: Buffer;
  /** Besides the length and the ETag of the bytes; an undefined one is not sent. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** Bytes of the whole that are sent before the connection waits for `resume`. */
  readonly stallsAt?: number;
  /** Bytes of an answer after which the connection is cut; as often as this list is long. */
  readonly cutsAfter?: number[];
  /** Statuses of the next answers, before those with the bytes. */
  readonly statuses?: number[];
  readonly ignoresRanges?: boolean;
  readonly redirectsTo?: string;
}

export interface SeenRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

export class CopyOrigin {
  private readonly resources = new Map<string, Resource & { readonly resumed: Promise<void> }>();
  private readonly resumes: (() => void)[] = [];
  readonly seen: SeenRequest[] = [];
  readonly url: string;
  private readonly server: Server;

  private constructor(server: Server) {
    this.server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('request', (request, response) => void this.answer(request, response));
  }

  static async start(): Promise<CopyOrigin> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    server.unref();
    return new CopyOrigin(server);
  }

  /** Returns the URL of the resource. */
  put(path: string, resource: Resource): string {
    const resumed = new Promise<void>((resolve) => this.resumes.push(resolve));
    this.resources.set(path, { ...resource, resumed });
    return `${this.url}${path}`;
  }

  /** No resource stalls any more. */
  resume(): void {
    for (const resume of this.resumes.splice(0)) resume();
  }

  requestsFor(path: string): SeenRequest[] {
    return this.seen.filter((request) => request.path === path);
  }

  /** Cuts the connections that there are. */
  stopConnections(): void {
    this.server.closeAllConnections();
  }

  stop(): void {
    this.stopConnections();
    this.server.close();
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = ''] = (request.url ?? '').split('?');
    this.seen.push({ path, headers: request.headers });
    const found = this.resources.get(path);
    response.on('error', () => {});
    if (!found) return void response.writeHead(404).end();
    const status = found.statuses?.shift();
    if (status !== undefined) return void response.writeHead(status).end();
    if (found.redirectsTo !== undefined) return void response.writeHead(302, { Location: found.redirectsTo }).end();
    const { bytes } = found;
    const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
    const isRange = first !== undefined && !found.ignoresRanges;
    const from = isRange ? Number(first) : 0;
    const to = isRange && last ? Math.min(Number(last) + 1, bytes.length) : bytes.length;
    if (isRange && from >= bytes.length) return void response.writeHead(416).end();
    const headers: Record<string, string | number | undefined> = {
      'Content-Length': to - from,
      ETag: `"${createHash('md5').update(bytes).digest('hex')}"`,
      ...(isRange && { 'Content-Range': `bytes ${from}-${to - 1}/${bytes.length}` }),
      ...found.headers,
    };
    response.writeHead(
      isRange ? 206 : 200,
      Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)),
    );
    const cutAfter = found.cutsAfter?.shift();
    if (cutAfter !== undefined) {
      response.write(bytes.subarray(from, from + cutAfter), () => response.destroy());
      return;
    }
    const stallsAt = found.stallsAt ?? to;
    if (from < stallsAt) await write(response, bytes.subarray(from, Math.min(stallsAt, to)));
    if (stallsAt < to) {
      await found.resumed;
      await write(response, bytes.subarray(Math.max(stallsAt, from), to));
    }
    response.end();
  }
}

function write(response: ServerResponse, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    response.once('close', () => resolve());
    response.write(bytes, () => resolve());
  });
}
