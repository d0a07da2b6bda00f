/** Access log: a line for each answered request, in the common log format of web servers, which Azurite prints, too; or in JSON. */
import type { LogOutput } from '../../base/log-output.ts';
import type { Reply } from '../reply.ts';
import type { RequestContext } from '../request.ts';
import { redactedUrl } from './request-log.ts';

export interface AccessLog {
  /** `started` is a time of performance.now(). */
  answered(ctx: RequestContext, reply: Reply, started: number, bytes: number): void;
}

export function createAccessLog(output: Pick<LogOutput, 'gather'>, format: 'text' | 'json'): AccessLog {
  const formatLine = format === 'json' ? jsonLine : commonLogLine;
  return {
    answered(ctx, reply, started, bytes) {
      // Of the health checks of containers and load balancers, which come every few seconds.
      if (ctx.incoming.url?.startsWith('/health/')) return;
      output.gather(formatLine(ctx, reply, started, bytes));
    },
  };
}

function commonLogLine({ incoming }: RequestContext, { status }: Reply, _started: number, bytes: number): string {
  const { method, httpVersion, socket } = incoming;
  const request = `${method} ${printable(redactedUrl(incoming) ?? '')} HTTP/${httpVersion}`;
  return `${socket.remoteAddress ?? '-'} - - [${commonLogDate(Date.now())}] "${request}" ${status} ${bytes || '-'}\n`;
}

function jsonLine({ incoming, id, operation }: RequestContext, reply: Reply, started: number, bytes: number): string {
  const line = {
    ...{ level: 'info', time: new Date().toISOString(), requestId: id, from: incoming.socket.remoteAddress },
    ...{ method: incoming.method, url: redactedUrl(incoming), operation, status: reply.status },
    ...{ code: reply.headers?.['x-ms-error-code'], bytes, ms: Math.round((performance.now() - started) * 10) / 10 },
    msg: 'request',
  };
  return `${JSON.stringify(line)}\n`;
}

const UNPRINTABLE = /[^\x21\x23-\x5b\x5d-\x7e]/;

/** A quote in a URL must not end the field, nor a control character the line. */
function printable(url: string): string {
  if (!UNPRINTABLE.test(url)) return url;
  return url.replace(/[^\x21\x23-\x5b\x5d-\x7e]/g, (each) => `\\x${each.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
let lastSecond = -1;
let lastDate = '';

/** 17/Nov/2026:15:31:46 +0000; the text is made once a second. */
export function commonLogDate(milliseconds: number): string {
  const second = Math.floor(milliseconds / 1_000);
  if (second === lastSecond) return lastDate;
  const [year, month, day, time] = new Date(milliseconds).toISOString().slice(0, 19).split(/[-T]/) as [
    string,
    string,
    string,
    string,
  ];
  lastSecond = second;
  lastDate = `${day}/${MONTHS[Number(month) - 1]}/${year}:${time} +0000`;
  return lastDate;
}
