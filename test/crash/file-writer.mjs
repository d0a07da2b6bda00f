/**
 * One client of the File service that knows the expected tree of its share: what every answer confirmed, and at most one request that was
 * never answered, which happened as a whole or did not happen.
 */
import { bytesOf } from '../support/seeded-bytes.mjs';
import { differences, observeShare } from './share-state.mjs';

/**
 * @typedef {import('./share-state.mjs').World} World
 * @typedef {import('./share-state.mjs').Tree} Tree
 * @typedef {import('./share-state.mjs').Taken} Taken
 * @typedef {import('./share-state.mjs').Client} Client
 * @typedef {import('../support/signed-client.mjs').Answer} Answer
 * @typedef {ReturnType<import('../support/random.mjs').randomOf>} Random
 * @typedef {{ status: number, ask: () => Promise<Answer>, change: (before: NonNullable<World>, answer?: Answer) => World }} Step
 */

const DEPTH_MAX = 4;
const NODES_MAX = 40;
const BYTES_MAX = 60_000;
const SNAPSHOTS_MAX = 3;
const WITH_SNAPSHOTS = { 'x-ms-delete-snapshots': 'include' };

/** @type {NonNullable<World>} */
const EMPTY = { tree: new Map(), snapshots: [] };

/** A change of the share that no snapshot shows. @param {(before: Tree) => Tree} change @returns {Step['change']} */
const ofTree =
  (change) =>
  ({ tree, snapshots }) => ({ tree: change(tree), snapshots });

/** @param {number} number */
export function newFileWriter(number) {
  const share = `crash-${number}`;
  /** @type {World} */
  let world;
  /** @type {Step | undefined} */
  let unanswered;
  let acknowledged = 0;
  let serial = 0;

  /** @param {Client} client @param {string} method @param {string} path @param {string} query @param {Record<string, string>} [headers] @param {Buffer} [body] */
  const send = (client, method, path, query, headers = {}, body) =>
    client.send(method, `/${share}${path && `/${path}`}${query && `?${query}`}`, { headers, ...(body && { body }) });

  /** @param {Client} client @param {Random} random @returns {Step} */
  function newStep(client, random) {
    if (!world) return { status: 201, ask: () => send(client, 'PUT', '', 'restype=share'), change: (empty) => empty };
    if (random.chance(0.01))
      return {
        status: 202,
        ask: () => send(client, 'DELETE', '', 'restype=share', WITH_SNAPSHOTS),
        change: () => undefined,
      };
    const { tree, snapshots } = world;
    if (random.chance(0.06))
      return snapshots.length < SNAPSHOTS_MAX ? takeSnapshot(client) : deleteSnapshot(client, random.oneOf(snapshots));
    const files = [...tree].flatMap(([path, bytes]) => (bytes ? [{ path, bytes }] : []));
    const directories = ['', ...[...tree].flatMap(([path, bytes]) => (bytes ? [] : [path]))];
    const parent = random.oneOf(directories.filter((path) => path.split('/').length < DEPTH_MAX));
    const path = `${parent}${parent && '/'}n${serial++}`;
    const file = random.oneOf(files);
    const kinds = ['range', 'range', 'clear', 'resize', 'restore', 'rename', 'rename', 'rename', 'replace', 'delete'];
    const kind = tree.size < 6 || (tree.size < NODES_MAX && random.chance(0.3)) ? 'create' : random.oneOf(kinds);
    if (kind === 'create' && random.chance(0.5)) return makeDirectory(client, path);
    if (kind === 'create' || !file) return makeFile(client, path, random.below(BYTES_MAX));
    if (kind === 'range' || kind === 'clear') return writeRange(client, random, file, kind === 'range');
    const copied = kind === 'restore' ? copiedFrom(random, snapshots) : undefined;
    if (copied) return restore(client, copied, random.chance(0.5) ? path : file.path);
    if (kind === 'resize' || kind === 'restore') return resize(client, file, random.below(BYTES_MAX));
    const [source = ''] = random.oneOf([...tree]);
    if (kind === 'rename' && !isBelow(path, source)) return rename(client, tree, source, path);
    if (kind === 'replace' && source !== file.path && !isBelow(file.path, source))
      return rename(client, tree, source, file.path);
    return remove(client, tree, source);
  }

  /** @param {Client} client @param {string} path @returns {Step} */
  const makeDirectory = (client, path) => ({
    status: 201,
    ask: () => send(client, 'PUT', path, 'restype=directory'),
    change: ofTree((before) => new Map(before).set(path, undefined)),
  });

  /** @param {Client} client @param {string} path @param {number} length @returns {Step} */
  const makeFile = (client, path, length) => ({
    status: 201,
    ask: () => send(client, 'PUT', path, '', { 'x-ms-type': 'file', 'x-ms-content-length': String(length) }),
    change: ofTree((before) => new Map(before).set(path, Buffer.alloc(length))),
  });

  /** @param {Client} client @param {Random} random @param {{ path: string, bytes: Buffer }} file @param {boolean} isUpdate @returns {Step} */
  function writeRange(client, random, { path, bytes }, isUpdate) {
    if (bytes.length === 0) return resize(client, { path, bytes }, 1_000);
    const from = random.below(bytes.length);
    const length = 1 + random.below(bytes.length - from);
    const written = isUpdate ? bytesOf(`${number}-${serial++}`, length) : Buffer.alloc(length);
    const headers = { 'x-ms-write': isUpdate ? 'update' : 'clear', 'x-ms-range': `bytes=${from}-${from + length - 1}` };
    return {
      status: 201,
      ask: () => send(client, 'PUT', path, 'comp=range', headers, isUpdate ? written : undefined),
      change: ofTree((before) => {
        const after = Buffer.from(bytes);
        after.set(written, from);
        return new Map(before).set(path, after);
      }),
    };
  }

  /** @param {Client} client @param {{ path: string, bytes: Buffer }} file @param {number} length @returns {Step} */
  const resize = (client, { path, bytes }, length) => ({
    status: 200,
    ask: () => send(client, 'PUT', path, 'comp=properties', { 'x-ms-content-length': String(length) }),
    change: ofTree((before) => {
      const after = Buffer.alloc(length);
      bytes.copy(after);
      return new Map(before).set(path, after);
    }),
  });

  /** @param {Client} client @returns {Step} */
  const takeSnapshot = (client) => ({
    status: 201,
    ask: () => send(client, 'PUT', '', 'restype=share&comp=snapshot'),
    change({ tree, snapshots }, answer) {
      const second = answer && String(answer.headers['x-ms-snapshot']);
      return { tree, snapshots: [...snapshots, { second, tree }] };
    },
  });

  /** @param {Client} client @param {Taken} gone @returns {Step} */
  const deleteSnapshot = (client, gone) => ({
    status: 202,
    ask: () => send(client, 'DELETE', '', `restype=share&sharesnapshot=${gone.second}`),
    change: ({ tree, snapshots }) => ({ tree, snapshots: snapshots.filter((each) => each !== gone) }),
  });

  /** @param {Random} random @param {readonly Taken[]} snapshots */
  function copiedFrom(random, snapshots) {
    const { second, tree = /** @type {Tree} */ (new Map()) } = random.oneOf(snapshots) ?? {};
    const [path, bytes] = random.oneOf([...tree]) ?? [];
    return path && bytes ? { second, path, bytes } : undefined;
  }

  /** A file of a snapshot, copied over one that may be there. @param {Client} client @param {{ second: string | undefined, path: string, bytes: Buffer }} from @param {string} to @returns {Step} */
  const restore = (client, { second, path, bytes }, to) => ({
    status: 202,
    ask: () =>
      send(client, 'PUT', to, '', { 'x-ms-copy-source': `${client.url}/${share}/${path}?sharesnapshot=${second}` }),
    change: ofTree((before) => new Map(before).set(to, bytes)),
  });

  /** With all that is below, over a file that may be there. @param {Client} client @param {Tree} tree @param {string} from @param {string} to @returns {Step} */
  function rename(client, tree, from, to) {
    const headers = {
      'x-ms-file-rename-source': `http://127.0.0.1/devstoreaccount1/${share}/${from}`,
      'x-ms-file-rename-replace-if-exists': 'true',
    };
    const query = tree.get(from) ? 'comp=rename' : 'restype=directory&comp=rename';
    return {
      status: 200,
      ask: () => send(client, 'PUT', to, query, headers),
      change: ofTree((before) => {
        const moved = [...before].filter(([path]) => isBelow(path, from));
        const after = new Map(before);
        for (const [path] of moved) after.delete(path);
        for (const [path, bytes] of moved) after.set(to + path.slice(from.length), bytes);
        return after;
      }),
    };
  }

  /** A directory that is not empty is refused. @param {Client} client @param {Tree} tree @param {string} path @returns {Step} */
  function remove(client, tree, path) {
    const isFull = [...tree.keys()].some((other) => other !== path && isBelow(other, path));
    return {
      status: isFull ? 409 : 202,
      ask: () => send(client, 'DELETE', path, tree.get(path) ? '' : 'restype=directory'),
      change: ofTree((before) => new Map([...before].filter(([other]) => isFull || other !== path))),
    };
  }

  /** @param {Step} step */
  async function take(step) {
    unanswered = step;
    const answer = await step.ask();
    if (answer.status !== step.status)
      throw new Error(`answered ${answer.status} ${answer.code}, not ${step.status}: ${answer.body}`);
    world = step.change(world ?? EMPTY, answer);
    unanswered = undefined;
    acknowledged++;
  }

  return {
    acknowledged: () => acknowledged,

    /** Writes until the server is gone. @param {Client} client @param {Random} random @param {() => boolean} isOver */
    async write(client, random, isOver) {
      while (!isOver()) {
        try {
          await take(newStep(client, random));
        } catch (error) {
          if (/** @type {NodeJS.ErrnoException} */ (error).code || isOver()) return;
          throw error;
        }
      }
    },

    /** Differences between the server and the expected state, as text. @param {Client} client */
    async verify(client) {
      const seen = await observeShare(client, share);
      const possible = [world, ...(unanswered ? [unanswered.change(world ?? EMPTY)] : [])];
      const right = possible.find((one) => differences(one, seen).length === 0);
      if (!right && !possible.some((one) => one === undefined && seen === undefined))
        return differences(world, seen).map((difference) => `share ${share}: ${difference}`);
      // With the names of the snapshots, one of which may be new.
      world = right && seen && { tree: right.tree, snapshots: right.snapshots.map(named(seen)) };
      unanswered = undefined;
      return [];
    },

    /** @param {Client} client */
    async removeAll(client) {
      if (world) await send(client, 'DELETE', '', 'restype=share', WITH_SNAPSHOTS);
    },
  };
}

/** @param {string} path @param {string} directory */
const isBelow = (path, directory) => path === directory || path.startsWith(`${directory}/`);

/** @param {NonNullable<World>} seen @returns {(taken: Taken, i: number) => Taken} */
const named = (seen) => (taken, i) => ({ ...taken, second: seen.snapshots[i]?.second });
