/** Bodies of Blob Batch with a signature on each part, and its replies, part by part. */
import { authorizationFor } from './signing.ts';
import { type Answer, account, accountKey, type RawRequest, type Running } from './test-server.ts';

export interface Part {
  /** What stands on the request line. */
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** By default that of the account. */
  readonly key?: string;
  readonly unsigned?: boolean;
}

export interface PartAnswer {
  readonly id: string | undefined;
  readonly status: number;
  readonly reason: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export const BOUNDARY = 'batch_1';

export function partText({ url, method = 'DELETE', headers = {}, key = accountKey, unsigned = false }: Part): string {
  const pairs = Object.entries({ 'x-ms-date': new Date().toUTCString(), ...headers });
  const target = url.replace(/^https?:\/\/[^/]*/, '');
  const sending = { method, target, headers: pairs };
  const signed = unsigned ? [] : [['Authorization', authorizationFor('SharedKey', sending, { account, key })]];
  const lines = [...pairs, ...signed].map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${url} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

export function batchText(parts: readonly (Part | string)[]): string {
  const texts = parts.map(
    (part, at) =>
      `--${BOUNDARY}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: ${at}\r\n\r\n` +
      `${typeof part === 'string' ? part : partText(part)}\r\n`,
  );
  return `${texts.join('')}--${BOUNDARY}--\r\n`;
}

export function sendBatch(running: Running, path: string, body: string, request: RawRequest = {}): Promise<Answer> {
  const headers = { 'Content-Type': `multipart/mixed; boundary=${BOUNDARY}`, ...request.headers };
  return running.request('POST', path, { ...request, headers, body });
}

export function partAnswers({ headers, text }: Answer): PartAnswer[] {
  const boundary = /^multipart\/mixed; boundary=(batchresponse_\S+)$/.exec(headers['content-type'] ?? '')?.[1];
  if (boundary === undefined || !text.endsWith(`--${boundary}--`)) throw new Error(`no batch: ${text}`);
  return text
    .slice(0, -`--${boundary}--`.length)
    .split(`--${boundary}\r\n`)
    .slice(1)
    .map((part) => {
      const [outer = '', head = '', ...body] = part.split('\r\n\r\n');
      const [line = '', ...lines] = head.split('\r\n');
      const [, status, reason = ''] = /^HTTP\/1\.1 (\d+) (.*)$/.exec(line) ?? [];
      const pairs = lines.map((one): [string, string] => [one.split(': ')[0]!, one.slice(one.indexOf(': ') + 2)]);
      return {
        id: /^Content-ID: (.*)$/m.exec(outer)?.[1],
        status: Number(status),
        reason,
        headers: new Map(pairs),
        body: body.join('\r\n\r\n').replace(/\r\n$/, ''),
      };
    });
}

/** Of each part its Content-ID, status and error code. */
export function outcomes(answer: Answer): [id: string | undefined, status: number, code: string | undefined][] {
  return partAnswers(answer).map(({ id, status, headers }) => [id, status, headers.get('x-ms-error-code')]);
}
