/** A server for the tests of one file, Microsoft's clients for it, and raw requests that these clients cannot express. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  AzureNamedKeyCredential,
  TableClient,
  TableServiceClient,
  type TableServiceClientOptions,
} from '@azure/data-tables';
import {
  BlobServiceClient,
  type ContainerClient,
  newPipeline,
  type RequestPolicyFactory,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import {
  StorageSharedKeyCredential as FileKeyCredential,
  newPipeline as newFilePipeline,
  type ShareClient,
  ShareServiceClient,
} from '@azure/storage-file-share';
import {
  newPipeline as newQueuePipeline,
  StorageSharedKeyCredential as QueueKeyCredential,
  QueueServiceClient,
} from '@azure/storage-queue';
import { type HoldfastServer, type StartOptions, start, type Where } from 'holdfast';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { missing } from './postgres-cluster.ts';
import { authorizationFor } from './signing.ts';
import { type Origins, startThree } from './three-processes.ts';

type Policy = NonNullable<TableServiceClientOptions['additionalPolicies']>[number]['policy'];
type PipelineRequest = Parameters<Policy['sendRequest']>[0];
type SendRequest = Parameters<Policy['sendRequest']>[1];

export const account = 'devstoreaccount1';
export const accountKey = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
export const version = '2025-07-05';

type HeaderValue = string | number | readonly string[] | undefined;

export interface RawRequest {
  /** An undefined value removes a header that is sent by default. */
  readonly headers?: Readonly<Record<string, HeaderValue>>;
  readonly body?: string | Uint8Array;
  /** The key to sign with; by default that of the account. */
  readonly key?: string;
  readonly unsigned?: boolean;
  /** The service; by default blob. */
  readonly of?: keyof Origins;
}

export interface Answer {
  readonly status: number;
  readonly reason: string;
  readonly headers: IncomingHttpHeaders;
  /** Names and values alternating, with the case of the names. */
  readonly rawHeaders: readonly string[];
  readonly bytes: Buffer;
  readonly text: string;
}

export interface Running {
  readonly engine: Engine;
  readonly server: HoldfastServer;
  /** With LMDB only. */
  readonly folder: string | undefined;
  /** The location of the store for `check`; undefined in memory. */
  readonly where: Where;
  /** The folder of the extents; not in memory. */
  readonly extents: string;
  readonly service: BlobServiceClient;
  /** Each request goes to the next of the processes, as with `service`. */
  readonly queues: QueueServiceClient;
  readonly tables: TableServiceClient;
  readonly files: ShareServiceClient;
  /** A client of one table, which may not exist yet. */
  table(name: string): TableClient;
  /** A new container with a unique name. */
  newContainer(): Promise<ContainerClient>;
  /** Likewise, a new share. */
  newShare(): Promise<ShareClient>;
  /** A signed request; the path begins after the account and is sent unchanged. */
  request(method: string, path: string, request?: RawRequest): Promise<Answer>;
  /** The text of a signed request, to be sent over a socket. */
  head(method: string, path: string, headers: Readonly<Record<string, HeaderValue>>): string;
  socket(): Socket;
}

/** On PostgreSQL three processes share the store, and each request goes to the next of them. */
export type Engine = 'LMDB' | 'memory' | 'PostgreSQL';

interface EngineOptions {
  readonly start?: StartOptions;
  /** Takes so long on PostgreSQL that only `npm run test:postgres` runs it there. */
  readonly heavy?: boolean;
}

type Tests = (running: Running) => void;

export function onEveryEngine(tests: Tests, options: EngineOptions = {}): void {
  for (const engine of ['LMDB', 'memory', 'PostgreSQL'] as const) onEngine(engine, tests, options);
}

/** Engines that keep bytes in files. */
export function onEveryDisk(tests: Tests, options: EngineOptions = {}): void {
  for (const engine of ['LMDB', 'PostgreSQL'] as const) onEngine(engine, tests, options);
}

export function onLmdb(tests: Tests): void {
  onEngine('LMDB', tests, {});
}

export function onEngine(engine: Engine, tests: Tests, { start = {}, heavy = false }: EngineOptions): void {
  if (engine !== 'PostgreSQL') {
    describe(`on ${engine}`, () => tests(serverFor(engine, start)));
  } else if (heavy ? doesHeavy(engine) : postgresTests !== 'nothing') {
    const title = `on PostgreSQL${missing ? ` (${missing})` : ''}`;
    describe.skipIf(missing)(title, { timeout: POSTGRES_TIMEOUT }, () => tests(serverFor(engine, start)));
  }
}

export function doesHeavy(engine: Engine): boolean {
  return engine !== 'PostgreSQL' || postgresTests === 'everything';
}

/** Which tests run on PostgreSQL: 'nothing', 'everything', or by default those that are fast. */
const postgresTests = process.env.HOLDFAST_TEST_ON_POSTGRES;

/** Four servers share the processors of a test. */
const POSTGRES_TIMEOUT = 120_000;

interface Started {
  readonly server: HoldfastServer;
  readonly folder: string | undefined;
  readonly where: Where | undefined;
  readonly origins: Origins;
}

/** Starts before the tests of the surrounding describe, and stops after them. */
export function serverFor(engine: Engine, options: StartOptions = {}): Running {
  let running: (Started & { readonly agent: Agent }) | undefined;
  let service: BlobServiceClient;
  let queues: QueueServiceClient;
  let files: ShareServiceClient;
  let requests = 0;
  beforeAll(async () => {
    const started = await startOn(engine, options);
    running = { ...started, agent: new Agent({ keepAlive: true }) };
    service = clientOf(started.server.blobUrl, accountKey, next);
    queues = queuesAt(started.server.queueUrl, () => next('queue'));
    files = filesAt(started.server.fileUrl, () => next('file'));
  });
  afterAll(async () => {
    running?.agent.destroy();
    await running?.server.stop();
    if (running?.folder !== undefined) rmSync(running.folder, { recursive: true, force: true });
  });
  /** The host that clients name, whichever process answers. */
  const host = (of: keyof Origins = 'blob') => running!.origins[of][0]!.host;
  const next = (of: keyof Origins = 'blob') => running!.origins[of][requests++ % running!.origins[of].length]!;
  const nextTable = () => next('table');
  return {
    engine,
    get server() {
      return running!.server;
    },
    get folder() {
      return running!.folder;
    },
    get where() {
      return running!.where!;
    },
    get extents() {
      const { where } = running!;
      return typeof where === 'object' ? where.extents : join(where!, 'extents');
    },
    get service() {
      return service;
    },
    get queues() {
      return queues;
    },
    get files() {
      return files;
    },
    get tables() {
      return new TableServiceClient(running!.server.tableUrl, tableKey, tableOptions(nextTable));
    },
    table: (name) => new TableClient(running!.server.tableUrl, name, tableKey, tableOptions(nextTable)),
    async newContainer() {
      const container = service.getContainerClient(`c-${randomUUID()}`);
      await container.create();
      return container;
    },
    async newShare() {
      const share = files.getShareClient(`s-${randomUUID()}`);
      await share.create();
      return share;
    },
    request: (method, path, request = {}) =>
      send(next(request.of), running!.agent, host(request.of), method, path, request),
    head(method, path, headers) {
      const all = signed(host(), method, `/${account}${path}`, { headers });
      let text = `${method} /${account}${path} HTTP/1.1\r\n`;
      for (let at = 0; at < all.length; at += 2) text += `${all[at]}: ${all[at + 1]}\r\n`;
      return `${text}\r\n`;
    },
    socket() {
      const { hostname, port } = next();
      return connect({ host: hostname, port: Number(port) });
    },
  };
}

async function startOn(engine: Engine, options: StartOptions): Promise<Started> {
  if (engine === 'PostgreSQL') return { folder: undefined, ...(await startThree(options)) };
  const folder = engine === 'LMDB' ? mkdtempSync(join(tmpdir(), 'holdfast-')) : undefined;
  const place = folder === undefined ? { inMemory: true } : { location: folder, testClock: true };
  const server = await start({ blobPort: 0, ...place, ...options });
  const { blobUrl, queueUrl, tableUrl, fileUrl } = server;
  const [blob, queue, table, file] = [blobUrl, queueUrl, tableUrl, fileUrl].map((url) => [new URL(url)]);
  return { server, folder, where: folder, origins: { blob: blob!, queue: queue!, table: table!, file: file! } };
}

/**
 * Never retries, so that every error is seen.
 * @param next the process for each request, as if a load balancer chose it
 */
export function clientOf(blobUrl: string, key = accountKey, next?: () => URL): BlobServiceClient {
  const credential = new StorageSharedKeyCredential(account, key);
  const pipeline = newPipeline(credential, { retryOptions: { maxTries: 1 } });
  if (next) pipeline.factories.push(balancing(next));
  return new BlobServiceClient(blobUrl, pipeline);
}

function queuesAt(queueUrl: string, next: () => URL): QueueServiceClient {
  const credential = new QueueKeyCredential(account, accountKey);
  const pipeline = newQueuePipeline(credential, { retryOptions: { maxTries: 1 } });
  pipeline.factories.push(balancing(next));
  return new QueueServiceClient(queueUrl, pipeline);
}

export function filesAt(fileUrl: string, next: () => URL): ShareServiceClient {
  const credential = new FileKeyCredential(account, accountKey);
  const pipeline = newFilePipeline(credential, { retryOptions: { maxTries: 1 } });
  pipeline.factories.push(balancing(next));
  return new ShareServiceClient(fileUrl, pipeline);
}

const tableKey = new AzureNamedKeyCredential(account, accountKey);

function tableOptions(next: () => URL): TableServiceClientOptions {
  const policy = {
    name: 'balancing',
    sendRequest(request: PipelineRequest, then: SendRequest) {
      const { host } = new URL(request.url);
      request.headers.set('Host', host);
      request.url = request.url.replace(host, next().host);
      return then(request);
    },
  };
  return {
    allowInsecureConnection: true,
    retryOptions: { maxRetries: 0 },
    additionalPolicies: [{ policy, position: 'perRetry' }],
  };
}

function balancing(next: () => URL): RequestPolicyFactory {
  return {
    create: (policy) => ({
      sendRequest(request) {
        const url = new URL(request.url);
        request.headers.set('Host', url.host);
        request.url = request.url.replace(url.host, next().host);
        return policy.sendRequest(request);
      },
    }),
  };
}

function send(
  origin: URL,
  agent: Agent,
  host: string,
  method: string,
  path: string,
  request: RawRequest,
): Promise<Answer> {
  // Management endpoints are outside all accounts.
  const fullPath = /^\/(?:_holdfast|health)\//.test(path) ? path : `/${account}${path}`;
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest({
      host: origin.hostname,
      port: origin.port,
      method,
      path: fullPath,
      headers: signed(host, method, fullPath, request),
      agent,
    });
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('end', () => {
        const bytes = Buffer.concat(chunks);
        const { statusCode: status = 0, statusMessage: reason = '', headers, rawHeaders } = incoming;
        resolve({ status, reason, headers, rawHeaders, bytes, text: bytes.toString() });
      });
    });
    // Together with a string as its body Node would send the headers as UTF-8 instead of Latin-1.
    outgoing.end(request.body === undefined ? undefined : Buffer.from(request.body));
  });
}

/** Names and values alternating, with a SharedKey signature. */
function signed(host: string, method: string, fullPath: string, request: RawRequest): string[] {
  const bodyLength = request.body === undefined ? undefined : Buffer.byteLength(request.body);
  const wanted: Record<string, HeaderValue> = {
    Host: host,
    'x-ms-date': new Date().toUTCString(),
    'x-ms-version': version,
    'Content-Length': bodyLength ?? (method === 'PUT' ? 0 : undefined),
    ...request.headers,
  };
  const pairs = Object.entries(wanted).flatMap(([name, value]): [string, string][] => {
    if (value === undefined) return [];
    return typeof value === 'object' ? value.map((one) => [name, one]) : [[name, String(value)]];
  });
  if (request.unsigned || 'Authorization' in wanted) return pairs.flat();
  const signer = { account, key: request.key ?? accountKey };
  const scheme = request.of === 'table' ? 'SharedKey of tables' : 'SharedKey';
  const authorization = authorizationFor(scheme, { method, target: fullPath, headers: pairs }, signer);
  return [...pairs.flat(), 'Authorization', authorization];
}

/** The error of a call of Microsoft's client. */
export async function refusal(call: Promise<unknown>): Promise<{ status: number; code: string; details: unknown }> {
  const error = await call.then(
    () => new Error('the call succeeded'),
    (reason: unknown) => reason,
  );
  const { statusCode, response, details } = error as {
    statusCode?: number;
    response?: { headers: { get(name: string): string | undefined } };
    details?: unknown;
  };
  if (statusCode === undefined || response === undefined) throw error;
  return { status: statusCode, code: response.headers.get('x-ms-error-code') ?? '', details };
}

export async function expectRefusal(call: Promise<unknown>, status: number, code: string): Promise<void> {
  const refused = await refusal(call);
  expect([refused.status, refused.code]).toEqual([status, code]);
}

/** Expects an error response: the code in a header and in the body, and these details in the body. */
export function expectError(answer: Answer, status: number, code: string, details: Record<string, string> = {}): void {
  expect([answer.status, answer.headers['x-ms-error-code']]).toEqual([status, code]);
  expect(answer.headers['content-type']).toBe('application/xml');
  expect(answer.text).toContain(`<Code>${code}</Code>`);
  for (const [name, value] of Object.entries(details)) expect(elementOf(answer.text, name)).toBe(value);
}

/** The text of the first element with this name. */
export function elementOf(xml: string, name: string): string | undefined {
  const found = new RegExp(`<${name}(?: [^>]*)?>([^<]*)</${name}>`).exec(xml)?.[1];
  return found?.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&');
}

/** List Blobs as XML. */
export async function listXml(running: Running, container: string, query = ''): Promise<string> {
  const answer = await running.request('GET', `/${container}?restype=container&comp=list${query}`);
  expect(answer.status).toBe(200);
  return answer.text;
}

/** The response to the headers alone. */
export async function answerTo(
  running: Running,
  method: string,
  path: string,
  headers: Record<string, string | number>,
) {
  const socket = running.socket();
  socket.write(running.head(method, path, headers));
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  // Nothing more is sent, so the server closes the connection after its response.
  await once(socket, 'data');
  socket.end();
  await once(socket, 'close');
  return text;
}

/** Creates many empty blobs, pipelined over a few connections, which takes the least time. */
export async function fill(
  running: Running,
  container: ContainerClient,
  count: number,
  nameOf: (at: number) => string,
): Promise<void> {
  const worker = async (first: number, step: number) => {
    const socket = running.socket();
    let answers = '';
    socket.on('data', (chunk) => {
      answers += chunk;
    });
    const headers = { 'x-ms-blob-type': 'BlockBlob', 'Content-Length': 0 };
    let sent = 0;
    for (let at = first; at < count; at += step, sent++) {
      const last = at + step >= count ? { Connection: 'close' } : {};
      const path = `/${container.containerName}/${encodeURIComponent(nameOf(at))}`;
      socket.write(running.head('PUT', path, { ...headers, ...last }));
    }
    await once(socket, 'close');
    expect(answers.match(/HTTP\/1\.1 201 /g)).toHaveLength(sent);
  };
  await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map((first) => worker(first, 8)));
}
