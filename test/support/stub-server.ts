/** A server with a few stub operations, whose limits a test can set. */
import { onTestFinished } from 'vitest';
import { ticksFromUnix } from '../../src/base/time.ts';
import type { Source } from '../../src/content/content.ts';
import { createRestServer, type RestServerOptions } from '../../src/rest/http/server.ts';
import { streamAsProduced } from '../../src/rest/http/streamed.ts';
import { operationOn } from '../../src/rest/operation.ts';
import { contentBody, pathPart, xmlBody } from '../../src/rest/params.ts';
import { streamedXmlReply } from '../../src/rest/reply.ts';
import { StorageError } from '../../src/services/common/errors.ts';
import { type LogLine, logInto, serviceDefinition, testAccounts } from './raw-client.ts';

const MIB = 1 << 20;
const PAGE_BYTES = 16 * MIB;
const PAGE_PIECE = Buffer.alloc(MIB, 'page');
const PIECE = Buffer.alloc(64 << 10, 'piece');

export interface Gate {
  /** Requests in the operation that waits for the gate. */
  waiting: number;
  /** The maximum of `waiting`. */
  most: number;
  open(): void;
}

const operation = operationOn<Gate & { readonly opened: Promise<void> }>();
const table = [
  operation({
    name: 'Upload',
    route: 'PUT /{container}/{blob}',
    permission: 'write',
    test: 'none',
    input: { content: contentBody({ bytesMax: 1024 * MIB }), blob: pathPart(1) },
    run: async (gate, { content, blob }) => {
      // Except for the blob b, one piece is pulled, and no more until the gate opens.
      let length = 0;
      const source: Source = content.bytes();
      for await (const piece of source) {
        length += piece.length;
        if (blob !== 'b') await gate.opened;
        if (blob === 'refused') throw new StorageError('Refused', 409, 'This is refused in the middle.');
        source.recycle?.([piece]);
      }
      return length;
    },
    reply: (length) => ({ status: 201, headers: { 'x-ms-length': length } }),
  }),
  operation({
    name: 'Set',
    route: 'PUT /{container}',
    permission: 'write',
    test: 'none',
    input: { document: xmlBody('Document', MIB) },
    run: async () => undefined,
    reply: () => ({ status: 200 }),
  }),
  operation({
    name: 'Get Page',
    route: 'GET /{container}/{blob}',
    query: { comp: 'page' },
    permission: 'read',
    test: 'none',
    input: { blob: pathPart(1) },
    replyBytes: () => PAGE_BYTES,
    run: async (_gate, { blob }) =>
      blob === 'whole'
        ? Array(PAGE_BYTES / MIB).fill(PAGE_PIECE)
        : streamAsProduced(async (emit) => {
            for (let made = 0; made < PAGE_BYTES; made += MIB) {
              emit(PAGE_PIECE);
              await new Promise(setImmediate);
            }
          }),
    reply: (pieces) => streamedXmlReply(200, pieces),
  }),
  operation({
    name: 'Get',
    route: 'GET|HEAD /{container}/{blob}',
    permission: 'read',
    test: 'none',
    input: { blob: pathPart(1) },
    run: async (gate, { blob }) => {
      if (blob.startsWith('wait')) {
        gate.waiting++;
        gate.most = Math.max(gate.most, gate.waiting);
        await gate.opened;
        gate.waiting--;
      }
      return blob;
    },
    reply: (blob) => {
      if (blob === 'stream') return { status: 200, headers: { 'Content-Length': 64 * MIB }, body: stream() };
      if (blob === 'whole') return { status: 200, body: [Buffer.alloc(64 * MIB)] };
      return { status: 200, headers: { 'x-ms-name': blob }, body: blob };
    },
  }),
];

async function* stream(): AsyncGenerator<Uint8Array> {
  for (let sent = 0; sent < 64 * MIB; sent += PIECE.length) yield PIECE;
}

type Options = Pick<
  RestServerOptions<unknown>,
  'limits' | 'idleMilliseconds' | 'rateGraceMilliseconds' | 'keepAliveSeconds' | 'budget'
>;

/** Closed when the test is over. */
export async function smallServer(options: Options = {}): Promise<{ port: number; gate: Gate; logged: LogLine[] }> {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const gate = { waiting: 0, most: 0, open, opened };
  const logged: LogLine[] = [];
  const server = createRestServer({
    definition: serviceDefinition(table),
    accounts: testAccounts,
    access: async () => undefined,
    context: () => gate,
    log: logInto(logged),
    now: () => ticksFromUnix(Date.now()),
    ...options,
  });
  const port = await server.listen(0, '127.0.0.1');
  onTestFinished(async () => {
    gate.open();
    await server.close(0);
  });
  return { port, gate, logged };
}
