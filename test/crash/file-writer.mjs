/**
 * One client of the File service that knows the expected tree of its share: what every answer confirmed, and at most one request that was
 * never answered, which happened as a whole or did not happen.
 */
import { bytesOf } from '../support/seeded-bytes.mjs';

/**
 * @typedef {Map<string, Buffer | undefined> | undefined} World by path: the bytes of a file, undefined of a directory; without a map there is no share
 * @typedef {ReturnType<import('../support/signed-client.mjs').connect>} Client
 * @typedef {ReturnType<import('../support/random.mjs').randomOf>} Random
 * @typedef {Map<string, Buffer | undefined>} Tree
 * @typedef {{ status: number, ask: () => Promise<import('../support/signed-client.mjs').Answer>, change: (before: Tree) => World }} Step
 */

const DEPTH_MAX = 4;
const NODES_MAX = 40;
const BYTES_MAX = 60_000;

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
    if (!world) return { status: 201, ask: () => send(client, 'PUT', '', 'restype=share'), change: () => new Map() };
    if (random.chance(0.01))
      return { status: 202, ask: () => send(client, 'DELETE', '', 'restype=share'), change: () => undefined };
    const tree = world;
    const files = [...tree].flatMap(([path, bytes]) => (bytes ? [{ path, bytes }] : []));
    const directories = ['', ...[...tree].flatMap(([path, bytes]) => (bytes ? [] : [path]))];
    const parent = random.oneOf(directories.filter((path) => path.split('/').length < DEPTH_MAX));
    const path = `${parent}${parent && '/'}n${serial++}`;
    const file = random.oneOf(files);
    const kinds = ['range', 'range', 'range', 'clear', 'resize', 'rename', 'rename', 'rename', 'replace', 'delete'];
    const kind = tree.size < 6 || (tree.size < NODES_MAX && random.chance(0.3)) ? 'create' : random.oneOf(kinds);
    if (kind === 'create' && random.chance(0.5)) return makeDirectory(client, path);
    if (kind === 'create' || !file) return makeFile(client, path, random.below(BYTES_MAX));
    if (kind === 'range' || kind === 'clear') return writeRange(client, random, file, kind === 'range');
    if (kind === 'resize') return resize(client, file, random.below(BYTES_MAX));
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
    change: (before) => new Map(before).set(path, undefined),
  });

  /** @param {Client} client @param {string} path @param {number} length @returns {Step} */
  const makeFile = (client, path, length) => ({
    status: 201,
    ask: () => send(client, 'PUT', path, '', { 'x-ms-type': 'file', 'x-ms-content-length': String(length) }),
    change: (before) => new Map(before).set(path, Buffer.alloc(length)),
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
      change(before) {
        const after = Buffer.from(bytes);
        after.set(written, from);
        return new Map(before).set(path, after);
      },
    };
  }

  /** @param {Client} client @param {{ path: string, bytes: Buffer }} file @param {number} length @returns {Step} */
  const resize = (client, { path, bytes }, length) => ({
    status: 200,
    ask: () => send(client, 'PUT', path, 'comp=properties', { 'x-ms-content-length': String(length) }),
    change(before) {
      const after = Buffer.alloc(length);
      bytes.copy(after);
      return new Map(before).set(path, after);
    },
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
      change(before) {
        const moved = [...before].filter(([path]) => isBelow(path, from));
        const after = new Map(before);
        for (const [path] of moved) after.delete(path);
        for (const [path, bytes] of moved) after.set(to + path.slice(from.length), bytes);
        return after;
      },
    };
  }

  /** A directory that is not empty is refused. @param {Client} client @param {Tree} tree @param {string} path @returns {Step} */
  function remove(client, tree, path) {
    const isFull = [...tree.keys()].some((other) => other !== path && isBelow(other, path));
    return {
      status: isFull ? 409 : 202,
      ask: () => send(client, 'DELETE', path, tree.get(path) ? '' : 'restype=directory'),
      change: (before) => new Map([...before].filter(([other]) => isFull || other !== path)),
    };
  }

  /** @param {Step} step */
  async function take(step) {
    unanswered = step;
    const answer = await step.ask();
    if (answer.status !== step.status)
      throw new Error(`answered ${answer.status} ${answer.code}, not ${step.status}: ${answer.body}`);
    world = step.change(world ?? new Map());
    unanswered = undefined;
    acknowledged++;
  }

  /** @param {Client} client @param {Tree} found @param {string} path */
  async function observe(client, found, path) {
    const { status, body } = await send(client, 'GET', path, 'restype=directory&comp=list');
    if (status !== 200) return status;
    for (const [, kind, name] of body.toString().matchAll(/<(File|Directory)><Name>(.*?)<\/Name>/g)) {
      const below = `${path}${path && '/'}${name}`;
      if (kind === 'Directory') {
        found.set(below, undefined);
        await observe(client, found, below);
      } else {
        const file = await send(client, 'GET', below, '');
        found.set(below, file.status === 200 ? file.body : Buffer.from(`answered ${file.status}`));
      }
    }
    return status;
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
      /** @type {Tree} */
      const found = new Map();
      const status = await observe(client, found, '');
      const seen = status === 404 ? undefined : found;
      const possible = [world, ...(unanswered ? [unanswered.change(world ?? new Map())] : [])];
      const right = possible.find((one) => differences(one, seen).length === 0);
      if (!right && !possible.some((one) => one === undefined && seen === undefined))
        return differences(world, seen).map((difference) => `share ${share}: ${difference}`);
      world = right;
      unanswered = undefined;
      return [];
    },

    /** @param {Client} client */
    async removeAll(client) {
      if (world) await send(client, 'DELETE', '', 'restype=share');
    },
  };
}

/** @param {string} path @param {string} directory */
const isBelow = (path, directory) => path === directory || path.startsWith(`${directory}/`);

/** @param {World} expected @param {World} found @returns {string[]} */
function differences(expected, found) {
  if (!expected || !found) return expected === found ? [] : [expected ? 'it is gone' : 'it is there'];
  const paths = new Set([...expected.keys(), ...found.keys()]);
  return [...paths].flatMap((path) => {
    if (!expected.has(path)) return [`${path} is there`];
    if (!found.has(path)) return [`${path} is gone`];
    const [one, other] = [expected.get(path), found.get(path)];
    if (!one || !other) return one === other ? [] : [`${path} is of another kind`];
    return one.equals(other) ? [] : [`${path} has other bytes`];
  });
}
