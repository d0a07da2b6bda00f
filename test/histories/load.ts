/** Clients that work on a few blobs at once, in every way that can collide, and record the answers. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Server } from '../support/restartable-servers.ts';
import { connect } from '../support/signed-client.mjs';
import { FILE_CODES, makeShare, performOnFile } from './file-requests.ts';
import { type Answer, INFINITE, type Operation, type Request } from './history.ts';
import { type Hints, inPlaceRequest } from './in-place-choices.ts';
import { type InPlaceType, pieceBytes } from './in-place-model.ts';
import { LEASE_SECONDS } from './model.ts';
import { CONTAINER, perform, type Wire } from './requests.ts';

export interface LoadOptions {
  readonly servers: readonly Pick<Server, 'origin' | 'originOf'>[];
  /** Files in place of blobs: without conditions, snapshots, and leases that end. */
  readonly files?: boolean;
  readonly seed: number;
  readonly clients?: number;
  readonly blobs?: number;
  /** Whether the load moves the servers' time; they need a test clock. */
  readonly movesClock?: boolean;
  /** Whether the service keeps what is deleted or replaced. */
  readonly softDelete?: boolean;
  /** Of blobs that change in place; by default they are block blobs. */
  readonly type?: InPlaceType | undefined;
  /** Milliseconds that each client rests between two operations: a long load need not be a heavy one. */
  readonly rest?: number;
}

export interface Recorded {
  readonly operations: readonly Operation[];
  readonly softDelete: boolean;
  /** Codes that the service has in place of those of the model. */
  readonly codes?: Readonly<Record<string, string>> | undefined;
  /** Why there was no answer, and how often. */
  readonly unknown: Readonly<Record<string, number>>;
  /** Blobs that could not be read in the end, and why. */
  readonly unreadable: readonly string[];
}

type Connection = ReturnType<typeof connect>;

/** Inline in a row, and in extents. */
const SHORT_BYTES = 20;
const LONG_BYTES = 40_000;
/** Longer than any stop of a server that it should wait out. */
export const PATIENCE_MILLISECONDS = 90_000;
export const SHORT_PATIENCE_MILLISECONDS = 3_000;
export const CLOCK_MOVES_MILLISECONDS = 400;
/** Longer than any history. */
const RETENTION_DAYS = 365;
/** Undelete Blob restores 200 states of a blob in one commit, and more in several: a blob never has as many. */
const STATES_MAX = 190;
/** Of those that were taken last: older ones are rarely there. */
const SNAPSHOTS_KNOWN = 4;
/** A server that was killed or paused is back long before. */
const LAST_READS_MAX = 60;

/** Resolves when this many more operations were answered. */
export type More = (answers: number) => Promise<void>;

/** Goes on while the work does. Ends with a read of every blob at every server. */
export async function record(options: LoadOptions, work: (more: More) => Promise<void>): Promise<Recorded> {
  const {
    servers,
    clients = 16,
    blobs = 4,
    movesClock = false,
    softDelete = false,
    rest = 0,
    files = false,
    type,
  } = options;
  const originOf = (server: LoadOptions['servers'][number]) => (files ? server.originOf('File') : server.origin());
  const send = files ? performOnFile : perform;
  const names = Array.from({ length: blobs }, (_, i) => `blob-${i}`);
  /** The last of them are in use. */
  const inUse = () => names.slice(-blobs);
  /** By blob, how many states the load has made. */
  const states = new Map<string, number>();
  const operations: Operation[] = [];
  const unknown: Record<string, number> = {};
  const unreadable: string[] = [];
  const lengths = new Map<string, number>();
  const lengthOf = (content: string): number => lengths.get(content) ?? 0;
  const random = randomOf(options.seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  /** The last values that any client has received. */
  const leases = new Map<string, string>();
  const snapshots = new Map<string, readonly string[]>();
  const positions = new Map<string, Pick<Hints, 'position' | 'sequence'>>();
  let written = 0;
  let answers = 0;
  let isOver = false;

  async function ask(client: number, on: readonly string[], request: Request, wire: Wire) {
    const called = performance.now();
    const outcome = await send(on[0]!, request, wire);
    const at = performance.now();
    if (outcome === 'never sent') return undefined;
    if ('unknown' in outcome) unknown[outcome.unknown] = (unknown[outcome.unknown] ?? 0) + 1;
    const returned = 'answer' in outcome ? { returned: { at, answer: outcome.answer } } : {};
    for (const blob of on) operations.push({ blob, client, request, called, ...returned });
    if (!('answer' in outcome)) return undefined;
    answers++;
    return outcome.answer;
  }

  async function act(client: number): Promise<void> {
    const own = connections();
    const etags = new Map<string, string>();
    for (let home = client; !isOver; ) {
      const origin = originOf(random() < 0.2 ? pick(servers) : servers[home % servers.length]!);
      if (origin === undefined) {
        home++;
        await sleep(5);
        continue;
      }
      const blob = pick(inUse());
      const request = files ? nextOfFile(blob) : next(blob, etags.get(blob));
      countState(blob, request);
      const patience = random() < 0.3 ? SHORT_PATIENCE_MILLISECONDS : PATIENCE_MILLISECONDS;
      const answer = await ask(client, [blob], request, { origin, connection: own.to(origin), patience, lengthOf });
      if (answer) remember(blob, request, answer, etags);
      else home++;
      if (rest > 0) await sleep(rest * 2 * random());
    }
    own.close();
  }

  /** A blob that has had its number of states gives way to new ones, and all others with it. */
  function countState(blob: string, { kind }: Request): void {
    if (kind !== 'put' && kind !== 'snapshot') return;
    const count = (states.get(blob) ?? 0) + 1;
    states.set(blob, count);
    if (count === STATES_MAX && inUse().includes(blob))
      for (let i = 0; i < blobs; i++) names.push(`blob-${names.length}`);
  }

  /** Later requests use known values: the client's own ETag, and the leases and snapshots of any client. */
  function remember(blob: string, request: Request, answer: Answer, etags: Map<string, string>): void {
    if ('refused' in answer) return;
    if (request.kind === 'append') positions.set(blob, { position: answer.position! + pieceBytes(request.piece) });
    if (answer.sequence !== undefined) positions.set(blob, { sequence: answer.sequence });
    if (request.kind === 'acquire') leases.set(blob, request.leaseId);
    if (request.kind === 'change') leases.set(blob, request.newId);
    if (answer.snapshot)
      snapshots.set(blob, [answer.snapshot, ...(snapshots.get(blob) ?? [])].slice(0, SNAPSHOTS_KNOWN));
    if ((request.kind === 'put' || (request.kind === 'get' && !request.snapshot)) && answer.etag)
      etags.set(blob, answer.etag);
  }

  /** Positions and sequence numbers are the conditions. */
  function nextInPlace(blob: string, of: InPlaceType): Request {
    const roll = random() * 100;
    if (roll < 25) return { kind: 'get' };
    if (roll < 40) return nextOfSnapshots(blob, undefined, undefined);
    const name = `w${++written}`;
    if (roll < 50) return { kind: 'put', type: of, content: name, ...(roll < 47 && { ifNoneMatch: '*' }) };
    return inPlaceRequest(of, random, { name, ...positions.get(blob) });
  }

  function next(blob: string, ifMatch: string | undefined): Request {
    if (type) return nextInPlace(blob, type);
    const lease = leases.get(blob) ?? randomUUID();
    const leaseId = random() < 0.4 ? lease : undefined;
    if (random() < 0.25) return nextOfSnapshots(blob, ifMatch, leaseId);
    const roll = random() * 100;
    if (roll < 30) return { kind: 'get', leaseId: random() < 0.1 ? lease : undefined };
    if (roll < 66) {
      const put = { ...newContent(), leaseId };
      if (roll < 42) return put;
      return roll < 58 ? { ...put, ifMatch } : { ...put, ifNoneMatch: '*' };
    }
    if (roll < 74) return { kind: 'delete', leaseId, ifMatch: roll < 70 ? ifMatch : undefined };
    if (roll < 82) return { kind: 'acquire', leaseId: randomUUID(), seconds: roll < 78 ? INFINITE : LEASE_SECONDS };
    if (roll < 90) return { kind: roll < 88 ? 'release' : 'renew', leaseId: lease };
    if (roll < 94) return { kind: 'change', leaseId: lease, newId: randomUUID() };
    return { kind: 'break' };
  }

  function nextOfFile(file: string): Request {
    const lease = leases.get(file) ?? randomUUID();
    const leaseId = random() < 0.4 ? lease : undefined;
    const roll = random() * 100;
    if (roll < 35) return { kind: 'get', leaseId: random() < 0.1 ? lease : undefined };
    if (roll < 68) return { ...newContent(), leaseId };
    if (roll < 80) return { kind: 'delete', leaseId };
    if (roll < 87) return { kind: 'acquire', leaseId: randomUUID(), seconds: INFINITE };
    if (roll < 93) return { kind: 'release', leaseId: lease };
    return roll < 97 ? { kind: 'change', leaseId: lease, newId: randomUUID() } : { kind: 'break' };
  }

  function newContent() {
    const content = `w${++written}`;
    lengths.set(content, random() < 0.25 ? LONG_BYTES : SHORT_BYTES);
    return { kind: 'put' as const, content };
  }

  function nextOfSnapshots(blob: string, ifMatch: string | undefined, leaseId: string | undefined): Request {
    const roll = random() * 100;
    const snapshot = pick(snapshots.get(blob) ?? []);
    if (snapshot && roll < 35) return { kind: 'get', snapshot };
    if (snapshot && roll < 42) return { kind: 'delete snapshot', snapshot };
    if (roll < 65) return { kind: 'snapshot', leaseId, ifMatch: random() < 0.3 ? ifMatch : undefined };
    if (roll < 82) return { kind: 'delete', leaseId, snapshots: roll < 74 ? 'include' : 'only' };
    return { kind: 'undelete' };
  }

  async function moveClock(client: number): Promise<void> {
    const own = connections();
    while (!isOver) {
      await sleep(CLOCK_MOVES_MILLISECONDS * 2 * random());
      const origin = pick(servers).origin();
      if (origin === undefined) continue;
      const wire = { origin, connection: own.to(origin), patience: SHORT_PATIENCE_MILLISECONDS, lengthOf };
      await ask(client, names, { kind: 'advance' }, wire);
    }
    own.close();
  }

  async function readAtLast(blob: string, wire: Wire): Promise<boolean> {
    for (let tries = 0; tries < LAST_READS_MAX; tries++) {
      if (await ask(clients + 1, [blob], { kind: 'get' }, wire)) return true;
      await sleep(500);
    }
    return false;
  }

  const more: More = async (count) => {
    const goal = answers + count;
    while (answers < goal) await sleep(10);
  };

  // The line that names the port of files is printed last.
  while (files && servers.some((server) => originOf(server) === undefined)) await sleep(5);
  if (files) await makeTree(originOf(servers[0]!)!);
  else await makeContainer(servers[0]!.origin()!, softDelete);
  const all = Array.from({ length: clients }, (_, client) => act(client));
  if (movesClock) all.push(moveClock(clients));
  try {
    await work(more);
  } finally {
    isOver = true;
    await Promise.all(all);
  }
  const own = connections();
  for (const server of servers) {
    const origin = originOf(server)!;
    const wire = { origin, connection: own.to(origin), patience: PATIENCE_MILLISECONDS, lengthOf };
    for (const blob of names) if (!(await readAtLast(blob, wire))) unreadable.push(`${blob} at ${origin}`);
  }
  own.close();
  return { operations, softDelete, codes: files ? FILE_CODES : undefined, unknown, unreadable };
}

/** One of its own to each server, which a client keeps. */
export function connections() {
  const known = new Map<string, Connection>();
  return {
    to(origin: string): Connection {
      const connection = known.get(origin) ?? connect(origin);
      known.set(origin, connection);
      return connection;
    },
    close: () => known.forEach((connection) => void connection.close()),
  };
}

async function makeTree(origin: string): Promise<void> {
  const connection = connect(origin);
  await makeShare(connection);
  connection.close();
}

async function makeContainer(origin: string, softDelete: boolean): Promise<void> {
  const connection = connect(origin);
  await connection.setRetention(softDelete ? RETENTION_DAYS : undefined);
  const { status, body } = await connection.createContainer(CONTAINER);
  connection.close();
  if (status !== 201 && status !== 409) throw new Error(`Create Container was answered ${status}: ${body}`);
}

/** Mulberry32. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
