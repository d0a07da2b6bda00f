/**
 * HTTP client for copy sources on other servers. It connects to named origins only, to the very address that was checked after the name
 * was resolved, follows no redirect, and sends no credential but the one that the request has for the source.
 */
import { lookup } from 'node:dns/promises';
import {
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestOptions,
  request as requestHttp,
} from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import { commonErrors, errorFactory, StorageError } from '../../services/common/errors.ts';
import type {
  PageList,
  PageListRequest,
  RemoteRead,
  RemoteRequest,
  RemoteSources,
} from '../../services/common/remote-sources.ts';
import { isReachableByName } from './addresses.ts';
import { parseWebUrl } from './origins.ts';
import { readHead, statusError } from './remote-head.ts';
import { PAGE_LIST_VERSION, pageListUrl, readPageList } from './remote-page-list.ts';

const fail = errorFactory(commonErrors);

type SentRequest = Pick<RemoteRequest, 'url' | 'range' | 'signal'>;

interface RemoteExchange {
  readonly sent: ClientRequest;
  readonly answer: IncomingMessage;
}

export interface RemoteClientOptions {
  readonly origins: ReadonlySet<string>;
  /** All addresses of a name, in the order in which they are tried. */
  readonly resolve?: (name: string) => Promise<readonly string[]>;
  /** Until the head of the answer has arrived. */
  readonly answerMilliseconds?: number;
  /** Without a byte. */
  readonly idleMilliseconds?: number;
}

export function createRemoteSources(options: RemoteClientOptions): RemoteSources {
  const { origins, resolve = resolveName, answerMilliseconds = 30_000, idleMilliseconds = 30_000 } = options;

  async function open(request: RemoteRequest): Promise<RemoteRead> {
    const { authorization, version } = request;
    const credential = authorization === undefined ? {} : { Authorization: authorization, 'x-ms-version': version };
    return ask(request, credential, async ({ sent, answer }) => readAnswer(sent, answer, request));
  }

  async function listPages(request: PageListRequest): Promise<PageList> {
    const listing = { ...request, url: pageListUrl(request) };
    return ask(listing, { 'x-ms-version': PAGE_LIST_VERSION }, async ({ sent, answer }) => {
      try {
        const status = answer.statusCode ?? 0;
        if (status >= 400) throw statusError(status, answer.headers);
        return await readPageList(answer);
      } finally {
        sent.destroy();
      }
    });
  }

  /** @param read the answer */
  async function ask<T>(
    request: SentRequest,
    headers: OutgoingHttpHeaders,
    read: (exchange: RemoteExchange) => Promise<T>,
  ): Promise<T> {
    const url = parseWebUrl(request.url);
    if (!url || !origins.has(url.origin)) throw fail('AuthorizationFailure');
    const addresses = await resolveChecked(url.hostname);
    let failure: unknown;
    for (const address of addresses) {
      try {
        return await read(await send(url, address, request, headers));
      } catch (error) {
        // An answer, whatever it is, counts; without one the next address is tried.
        if (error instanceof StorageError) throw error;
        request.signal?.throwIfAborted();
        failure = error;
      }
    }
    throw noAnswer(failure);
  }

  /** A number is used as it was named; what a name leads to is checked, and not looked up again. */
  async function resolveChecked(hostname: string): Promise<readonly string[]> {
    const numeric = hostname.replace(/^\[(.*)\]$/, '$1');
    if (isIP(numeric)) return [numeric];
    const addresses = await resolve(hostname).catch((error: unknown) => {
      throw noAnswer(error);
    });
    const isLocal = /^(?:.*\.)?localhost$/.test(hostname);
    if (!isLocal && !addresses.every(isReachableByName)) throw fail('AuthorizationFailure');
    return addresses;
  }

  function send(
    url: URL,
    address: string,
    { range, signal }: SentRequest,
    headers: OutgoingHttpHeaders,
  ): Promise<RemoteExchange> {
    const isNumeric = isIP(url.hostname.replace(/^\[(.*)\]$/, '$1')) !== 0;
    const options: RequestOptions & { servername?: string } = {
      host: address,
      port: url.port || (url.protocol === 'https:' ? 443 : 80),
      path: `${url.pathname}${url.search}`,
      // A connection of its own: nothing of another request is on it.
      agent: false,
      ...(isNumeric ? {} : { servername: url.hostname }),
      ...(signal && { signal }),
      headers: {
        Host: url.host,
        'User-Agent': 'Holdfast',
        'Accept-Encoding': 'identity',
        ...(range && { Range: `bytes=${range.from}-${range.to ?? ''}` }),
        ...headers,
      },
    };
    return new Promise((resolveAnswer, reject) => {
      const sent = (url.protocol === 'https:' ? requestHttps : requestHttp)(options);
      const timer = setTimeout(() => sent.destroy(fail('OperationTimedOut')), answerMilliseconds).unref();
      sent.on('error', reject);
      sent.on('close', () => clearTimeout(timer));
      sent.on('response', (answer) => {
        clearTimeout(timer);
        answer.on('error', () => {});
        sent.setTimeout(idleMilliseconds, () => answer.destroy(new Error('no byte arrived for a while')));
        resolveAnswer({ sent, answer });
      });
      sent.end();
    });
  }

  return { open, listPages };
}

function readAnswer(sent: ClientRequest, answer: IncomingMessage, { range }: RemoteRequest): RemoteRead {
  const close = () => void sent.destroy();
  try {
    const status = answer.statusCode ?? 0;
    if (status !== 200 && status !== 206) throw statusError(status, answer.headers);
    const { head, from } = readHead(status, answer.headers, range?.from ?? 0);
    const begin = range?.from ?? 0;
    const end = Math.min(range?.to ?? head.length - 1, head.length - 1) + 1;
    return { head, bytes: () => cut(answer, begin - from, Math.max(end - begin, 0)), close };
  } catch (error) {
    close();
    throw error;
  }
}

/** A server that ignores ranges sends the whole: then the bytes before are passed over, and those after are not read. */
async function* cut(answer: IncomingMessage, skipped: number, length: number): AsyncGenerator<Buffer> {
  let [skip, missing] = [skipped, length];
  if (missing === 0) return;
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) {
      const wanted = piece.subarray(skip, skip + missing);
      skip = Math.max(skip - piece.length, 0);
      missing -= wanted.length;
      if (wanted.length > 0) yield wanted;
      if (missing === 0) return;
    }
  } catch (error) {
    throw noAnswer(error);
  }
  throw noAnswer(new Error('it ended before its last byte'));
}

function noAnswer(error: unknown): StorageError {
  return new StorageError(
    'BadGateway',
    502,
    `The copy source cannot be read: ${(error as Error | undefined)?.message}.`,
  );
}

async function resolveName(name: string): Promise<readonly string[]> {
  return (await lookup(name, { all: true })).map(({ address }) => address);
}
