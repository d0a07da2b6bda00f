/**
 * Clients that create, rename and delete the files of one directory, rename the directory, and take and read snapshots of the share.
 * A request without an answer is one to a server that was killed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Server } from '../support/restartable-servers.ts';
import type { connect } from '../support/signed-client.mjs';
import { connections, type More, PATIENCE_MILLISECONDS, randomOf } from './load.ts';
import { attempt, bodyOf, type Received, type Sent } from './requests.ts';
import { changesNothing, EMPTY, type TreeAnswer, type TreeOperation, type TreeRequest } from './tree-model.ts';

const SHARE = 'trees';
const CLIENTS = 6;
const NAMES = ['a', 'b', 'c'];
const DIRECTORIES = [EMPTY.directory, 'two'];
/** Since this version Create File takes bytes. */
const VERSION = '2026-02-06';
/** Beyond it snapshots are only read: a share has at most 200. */
const SNAPSHOTS_MAX = 190;

export async function recordTree(
  servers: readonly Pick<Server, 'originOf'>[],
  seed: number,
  work: (more: More) => Promise<void>,
): Promise<TreeOperation[]> {
  const operations: TreeOperation[] = [];
  const random = randomOf(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const snapshots: string[] = [];
  let directory = EMPTY.directory;
  let written = 0;
  let answers = 0;
  let isOver = false;

  function next(): TreeRequest {
    const [name, to] = [pick(NAMES), pick(NAMES)];
    const place = { directory: random() < 0.9 ? directory : pick(DIRECTORIES), name };
    const snapshot = random() < 0.5 ? pick(snapshots.slice(-3)) : undefined;
    const roll = random() * 100;
    if (roll < 25) return { kind: 'get', ...place, snapshot };
    if (roll < 40) return { kind: 'list', directory: place.directory, snapshot };
    if (roll < 65) return { kind: 'put', ...place, content: `w${++written}` };
    if (roll < 72) return { kind: 'delete', ...place };
    if (roll < 86 && name !== to) return { kind: 'rename', ...place, to };
    if (roll < 90 || snapshots.length >= SNAPSHOTS_MAX) return { kind: 'get', ...place };
    if (roll < 94) return { kind: 'snapshot' };
    return { kind: 'rename directory', directory, to: DIRECTORIES.find((each) => each !== directory)! };
  }

  async function act(client: number): Promise<void> {
    const own = connections();
    for (let home = client; !isOver; home++) {
      const origin = servers[home % servers.length]!.originOf('File');
      if (origin === undefined) {
        await sleep(5);
        continue;
      }
      const request = next();
      const called = performance.now();
      const wire = { connection: own.to(origin), patience: PATIENCE_MILLISECONDS };
      const outcome = await attempt(wire, sendingOf(request), (received) => answerOf(request, received));
      const at = performance.now();
      if (outcome === 'never sent' || ('unknown' in outcome && changesNothing(request))) continue;
      const end = 'answer' in outcome ? { returned: { at, ...outcome } } : { lostAt: at };
      operations.push({ client, request, called, ...end });
      if (!('answer' in outcome)) continue;
      answers++;
      const { answer } = outcome;
      if (request.kind === 'rename directory' && answer === 'done') directory = request.to;
      if (typeof answer === 'object' && 'snapshot' in answer) snapshots.push(answer.snapshot);
    }
    own.close();
  }

  while (servers.some((server) => server.originOf('File') === undefined)) await sleep(5);
  const first = connections();
  await makeTree(first.to(servers[0]!.originOf('File')!));
  first.close();
  const acting = Array.from({ length: CLIENTS }, (_, client) => act(client));
  try {
    await work(async (count) => {
      for (const goal = answers + count; answers < goal; ) await sleep(10);
    });
  } finally {
    isOver = true;
    await Promise.all(acting);
  }
  return operations;
}

async function makeTree({ send }: ReturnType<typeof connect>): Promise<void> {
  for (const target of [`/${SHARE}?restype=share`, `/${SHARE}/${EMPTY.directory}?restype=directory`]) {
    const { status, body } = await send('PUT', target);
    if (status !== 201) throw new Error(`${target} was answered ${status}: ${body}`);
  }
}

function sendingOf(request: TreeRequest): Sent {
  if (request.kind === 'snapshot') return ['PUT', `/${SHARE}?restype=share&comp=snapshot`];
  const directory = `/${SHARE}/${request.directory}`;
  const at = 'snapshot' in request && request.snapshot ? `sharesnapshot=${request.snapshot}` : '';
  const renaming = (source: string) => ({
    headers: {
      'x-ms-file-rename-source': `http://127.0.0.1/devstoreaccount1${source}`,
      'x-ms-file-rename-replace-if-exists': 'true',
    },
  });
  switch (request.kind) {
    case 'put': {
      const body = bodyOf(request.content, 0);
      const headers = { 'x-ms-type': 'file', 'x-ms-content-length': String(body.length), 'x-ms-version': VERSION };
      return ['PUT', `${directory}/${request.name}`, { headers, body }];
    }
    case 'get':
      return ['GET', `${directory}/${request.name}${at && `?${at}`}`];
    case 'list':
      return ['GET', `${directory}?restype=directory&comp=list${at && `&${at}`}`];
    case 'delete':
      return ['DELETE', `${directory}/${request.name}`];
    case 'rename':
      return ['PUT', `${directory}/${request.to}?comp=rename`, renaming(`${directory}/${request.name}`)];
    case 'rename directory': {
      const query = 'restype=directory&comp=rename';
      return ['PUT', `/${SHARE}/${request.to}?${query}`, { headers: withoutReplace(renaming(directory).headers) }];
    }
  }
}

const withoutReplace = ({ 'x-ms-file-rename-source': source }: Record<'x-ms-file-rename-source', string>) => ({
  'x-ms-file-rename-source': source,
});

function answerOf(
  { kind }: TreeRequest,
  { status, code, headers, body }: Received,
): { readonly answer: TreeAnswer } | { readonly unknown: string } {
  // Also of a 503 it is not taken for granted that nothing happened.
  if (status >= 500) return { unknown: `${status} ${code ?? ''}` };
  if (status === 404) return { answer: 'not found' };
  if (status >= 400) throw new Error(`${kind} was answered ${status} ${code}`);
  const text = body.toString();
  if (kind === 'get') return { answer: { content: text.split('\n')[0]! } };
  if (kind === 'snapshot') return { answer: { snapshot: String(headers['x-ms-snapshot']) } };
  if (kind !== 'list') return { answer: 'done' };
  const names = [...text.matchAll(/<File><Name>(.*?)<\/Name>/g)].map(([, name = '']) => name);
  return { answer: { names: names.sort().join() } };
}
