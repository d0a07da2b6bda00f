/** Clients that write blobs, retry when they are refused, and know the possible contents of each blob. */
import { setTimeout as sleep } from 'node:timers/promises';
import { bodyOf } from '../histories/requests.ts';
import { connect } from '../support/signed-client.mjs';

export const CONTAINER = 'failover';
const CLIENTS = 16;
/** Clients that only read: those that write wait for their commits while there is no primary. */
const READERS = 4;
/** Inline in a row, and in extents. */
const LENGTHS = [100, 1_024, 40_000];
const REST_MILLISECONDS = 10;
const RETRY_MILLISECONDS = 250;
/** Longer than the longest time-out of the server: no answer takes longer. */
const PATIENCE_MILLISECONDS = 60_000;
/** At most this many are reported. */
export const FAULTS_MAX = 50;

type Connection = ReturnType<typeof connect>;
type Answer = Awaited<ReturnType<Connection['send']>>;

interface Blob {
  readonly name: string;
  readonly length: number;
  /** Contents that it may have now or soon; undefined: there may be no such blob. */
  possible: (string | undefined)[];
  /** Of the last write, if it was acknowledged. */
  etag: string | undefined;
  writes: number;
}

export interface Load {
  /** Writes that were acknowledged so far. */
  acknowledged(): number;
  /** When the last of them was. */
  lastAt(): number;
  /** How often each other answer was given since this was asked last. */
  refusals(): Record<string, number>;
  stop(): Promise<void>;
  /** Verifies every blob against its possible contents. */
  verify(): Promise<{ blobs: number; unknown: number; happened: number }>;
  readonly faults: string[];
}

export async function startLoad(origins: readonly string[]): Promise<Load> {
  const connections = origins.map(connect);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;
  const blobs: Blob[] = [];
  const faults: string[] = [];
  let refusals: Record<string, number> = {};
  let acknowledged = 0;
  let lastAt = 0;
  let contents = 0;
  let isOver = false;
  const { status } = await connections[0]!.createContainer(CONTAINER);
  if (status !== 201) throw new Error(`Create Container was answered ${status}.`);

  function fault(text: string): void {
    if (faults.length < FAULTS_MAX) faults.push(text);
  }

  /** Undefined: it was refused for the moment, or nothing was heard. */
  async function send(
    connection: Connection,
    method: string,
    { name }: Blob,
    options: Parameters<Connection['send']>[2],
  ) {
    try {
      const answer = await connection.send(method, `/${CONTAINER}/${name}`, {
        ...options,
        onRequest(outgoing) {
          const timer = setTimeout(() => outgoing.destroy(new Error('no answer')), PATIENCE_MILLISECONDS);
          outgoing.once('close', () => clearTimeout(timer));
          outgoing.end(options?.body);
        },
      });
      if (answer.status < 500) return answer;
      const kind = `${answer.status} ${answer.code ?? ''}`;
      refusals[kind] = (refusals[kind] ?? 0) + 1;
      if (answer.status !== 503) fault(`${method} ${name}: ${kind} ${answer.body}`);
    } catch (error) {
      fault(`${method} ${name}: ${(error as Error).message}`);
    }
    return undefined;
  }

  /** One content, until it is acknowledged or the client has enough of it. */
  async function write(blob: Blob, client: number): Promise<void> {
    const content = `${blob.name} ${++contents}`;
    const isNew = blob.possible.includes(undefined);
    const ifNew: Record<string, string> = isNew && Math.random() < 0.5 ? { 'if-none-match': '*' } : {};
    const headers = { 'x-ms-blob-type': 'BlockBlob', ...ifNew };
    const givesUp = Math.random() < 0.3;
    blob.possible.push(content);
    blob.etag = undefined;
    blob.writes++;
    for (let attempt = 0; !isOver; attempt++) {
      const connection = connections[(client + attempt) % connections.length]!;
      const answer = await send(connection, 'PUT', blob, { headers, body: bodyOf(content, blob.length) });
      if (answer?.status === 201) {
        blob.possible = [content];
        blob.etag = answer.headers.etag;
        acknowledged++;
        lastAt = performance.now();
        return;
      }
      // An earlier attempt has happened.
      if (answer?.code === 'BlobAlreadyExists' && attempt > 0) {
        blob.possible = [content];
        return;
      }
      if (answer) fault(`PUT ${blob.name}: ${answer.status} ${answer.code} ${answer.body}`);
      if (givesUp) return;
      await sleep(RETRY_MILLISECONDS * (0.5 + Math.random()));
    }
  }

  async function read(blob: Blob, connection: Connection): Promise<string | undefined> {
    const { possible, etag, writes } = { ...blob, possible: [...blob.possible] };
    const answer = await send(connection, 'GET', blob, {});
    if (!answer) return undefined;
    const content = contentOf(answer);
    const told = content ?? `${answer.status} ${answer.code}`;
    if (blob.writes !== writes) return told;
    if (!possible.includes(content) || (content === undefined && answer.status !== 404)) {
      fault(`GET ${blob.name}: ${told}, expected ${possible.map((each) => each ?? 'nothing').join(' or ')}`);
    } else if (etag !== undefined && answer.headers.etag !== etag) {
      fault(`GET ${blob.name}: ${answer.headers.etag}, acknowledged was ${etag}`);
    }
    return told;
  }

  async function act(client: number): Promise<void> {
    const own: Blob[] = [];
    while (!isOver) {
      const roll = Math.random();
      if (roll < 0.25 && own.length > 0) await read(pick(own), pick(connections));
      else if (roll < 0.45 && own.length > 0) await write(pick(own), client);
      else {
        const name = `${client}-${own.length}`;
        const blob: Blob = { name, length: pick(LENGTHS), possible: [undefined], etag: undefined, writes: 0 };
        blobs.push(blob);
        own.push(blob);
        await write(blob, client);
      }
      await sleep(REST_MILLISECONDS * 2 * Math.random());
    }
  }
  async function lookOn(): Promise<void> {
    while (!isOver) {
      const told = blobs.length > 0 && (await read(pick(blobs), pick(connections)));
      await sleep(told ? REST_MILLISECONDS : RETRY_MILLISECONDS);
    }
  }
  const acting = [
    ...Array.from({ length: CLIENTS }, (_, client) => act(client)),
    ...Array.from({ length: READERS }, () => lookOn()),
  ];

  return {
    acknowledged: () => acknowledged,
    lastAt: () => lastAt,
    refusals() {
      const told = refusals;
      refusals = {};
      return told;
    },
    async stop() {
      isOver = true;
      await Promise.all(acting);
    },
    async verify() {
      const names = new Set(await connections[0]!.listBlobs(CONTAINER));
      const left = [...blobs];
      let unknown = 0;
      let happened = 0;
      const verifying = Array.from({ length: CLIENTS }, async (_, client) => {
        for (let blob = left.pop(); blob; blob = left.pop()) {
          const told = await read(blob, connections[client % connections.length]!);
          if (told === undefined) fault(`GET ${blob.name}: not readable after the failover`);
          if (names.has(blob.name) !== (told !== '404 BlobNotFound'))
            fault(`List Blobs and Get Blob differ: ${blob.name}`);
          if (blob.possible.length > 1) unknown++;
          if (blob.possible.length > 1 && told === blob.possible.at(-1)) happened++;
        }
      });
      await Promise.all(verifying);
      for (const connection of connections) connection.close();
      return { blobs: blobs.length, unknown, happened };
    },
    faults,
  };
}

/** Undefined where there is none. An incomplete body is no content that was written. */
function contentOf({ status, body }: Answer): string | undefined {
  if (status !== 200) return undefined;
  const content = body.subarray(0, body.indexOf('\n')).toString();
  return body.equals(bodyOf(content, body.length)) ? content : `torn ${content} (${body.length} bytes)`;
}
