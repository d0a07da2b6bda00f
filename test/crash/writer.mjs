/**
 * One client that writes one request after another, and knows what it left: the world that every answer confirmed, and the
 * world as it is if the request that was never answered happened after all. Nothing else may be found after a crash.
 */
import { createHash } from 'node:crypto';

const NAMES = 24;

/**
 * @typedef {{ md5: string, metadata: string | undefined, leased: boolean, etag: string | undefined }} Blob
 * @typedef {{ containers: Set<string>, blobs: Map<string, Blob> }} World
 */

/** @param {number} number */
export function newWriter(number) {
  const home = `home-${number}`;
  const passing = `passing-${number}`;
  /** @type {World} */
  let world = { containers: new Set(), blobs: new Map() };
  /** @type {World | undefined} */
  let unanswered;
  /** Every ETag that was ever seen: none comes twice. @type {Set<string>} */
  const etags = new Set();
  let acknowledged = 0;
  let serial = 0;

  /**
   * @param {ReturnType<import('./client.mjs').connect>} client
   * @param {ReturnType<import('./random.mjs').randomOf>} random
   */
  function newStep(client, random) {
    const path = random.chance(0.8) ? `${home}/blob-${random.below(NAMES)}` : `${passing}/blob-${random.below(4)}`;
    const container = path.slice(0, path.indexOf('/'));
    if (!world.containers.has(container)) {
      return step(
        201,
        () => client.createContainer(container),
        (next) => next.containers.add(container),
      );
    }
    if (container === passing && random.chance(0.2)) {
      return step(
        202,
        () => client.deleteContainer(passing),
        (next) => {
          next.containers.delete(passing);
          for (const each of [...next.blobs.keys()]) if (each.startsWith(`${passing}/`)) next.blobs.delete(each);
        },
      );
    }
    const blob = world.blobs.get(path);
    const lease = blob?.leased ? { 'x-ms-lease-id': leaseIdOf(path) } : {};
    const kind = blob ? random.oneOf(['put', 'put', 'put', 'if-match', 'metadata', 'lease', 'delete']) : 'put';
    const metadata = `${number}-${serial++}`;
    if (blob && kind === 'metadata') {
      const headers = { ...lease, 'x-ms-meta-serial': metadata };
      return step(
        200,
        () => client.send('PUT', `/${path}?comp=metadata`, { headers }),
        (next, etag) => next.blobs.set(path, { ...blob, metadata, etag }),
      );
    }
    if (blob && kind === 'lease') {
      const act = blob.leased ? client.releaseLease : client.acquireLease;
      return step(
        blob.leased ? 200 : 201,
        () => act(path, leaseIdOf(path)),
        (next) => next.blobs.set(path, { ...blob, leased: !blob.leased }),
      );
    }
    if (blob && kind === 'delete') {
      return step(
        202,
        () => client.deleteBlob(path, lease),
        (next) => next.blobs.delete(path),
      );
    }
    const bytes = contentOf(random, metadata);
    const headers = { ...lease, ...(kind === 'if-match' ? { 'if-match': blob?.etag ?? '' } : {}) };
    return step(
      201,
      () => client.putBlob(path, bytes, { ...headers, 'x-ms-meta-serial': metadata }),
      (next, etag) => next.blobs.set(path, { md5: md5Of(bytes), metadata, leased: blob?.leased ?? false, etag }),
    );
  }

  /**
   * @param {number} status what the answer must be
   * @param {() => Promise<import('./client.mjs').Answer>} ask
   * @param {(next: World, etag: string | undefined) => void} change
   */
  function step(status, ask, change) {
    return async () => {
      const next = { containers: new Set(world.containers), blobs: new Map(world.blobs) };
      change(next, undefined);
      unanswered = next;
      const answer = await ask();
      if (answer.status !== status)
        throw new Error(`answered ${answer.status} ${answer.code}, not ${status}: ${answer.body}`);
      const { etag } = answer.headers;
      change(next, etag);
      world = next;
      unanswered = undefined;
      acknowledged++;
      return etag;
    };
  }

  return {
    acknowledged: () => acknowledged,

    /**
     * Writes until the server is gone.
     * @param {ReturnType<import('./client.mjs').connect>} client
     * @param {ReturnType<import('./random.mjs').randomOf>} random
     */
    async write(client, random, isOver = () => false) {
      while (!isOver()) {
        try {
          await newStep(client, random)();
        } catch (error) {
          if (/** @type {NodeJS.ErrnoException} */ (error).code || isOver()) return;
          throw error;
        }
      }
    },

    /**
     * What is wrong with what the server shows now, in plain words.
     * @param {ReturnType<import('./client.mjs').connect>} client
     */
    async verify(client) {
      const found = await observe(client, [home, passing]);
      if (typeof found === 'string') return [found];
      const faults = differences(world, found.world, etags);
      if (faults.length > 0 && !(unanswered && differences(unanswered, found.world, etags).length === 0)) return faults;
      for (const { etag } of found.world.blobs.values()) if (etag) etags.add(etag);
      world = found.world;
      unanswered = undefined;
      return [];
    },
  };
}

/**
 * @param {ReturnType<import('./client.mjs').connect>} client
 * @param {string[]} containers
 * @returns {Promise<{ world: World } | string>}
 */
async function observe(client, containers) {
  /** @type {World} */
  const world = { containers: new Set(), blobs: new Map() };
  for (const container of containers) {
    const { status } = await client.send('GET', `/${container}?restype=container`);
    if (status !== 200 && status !== 404) return `${container}: its properties were answered ${status}`;
    if (status === 404) continue;
    world.containers.add(container);
    for (const name of await client.listBlobs(container)) {
      const path = `${container}/${name}`;
      const { status, headers, body, code } = await client.getBlob(path);
      if (status !== 200) return `${path}: it is listed, and answered ${status} ${code}`;
      const md5 = md5Of(body);
      if (headers['content-md5'] !== md5) return `${path}: its bytes are not those of its Content-MD5`;
      const leased = headers['x-ms-lease-state'] === 'leased';
      if (leased) {
        const held = await client.getBlob(path, { 'x-ms-lease-id': leaseIdOf(path) });
        if (held.status !== 200) return `${path}: its lease is another one (${held.code})`;
        const without = await client.putBlob(path, Buffer.from('x'));
        if (without.code !== 'LeaseIdMissing')
          return `${path}: its lease does not keep writers out (${without.status})`;
      }
      world.blobs.set(path, { md5, metadata: String(headers['x-ms-meta-serial']), leased, etag: headers.etag });
    }
  }
  return { world };
}

/**
 * An expected blob without an ETag may have any that was never seen.
 * @param {World} expected
 * @param {World} found
 * @param {Set<string>} seen
 */
function differences(expected, found, seen) {
  const faults = [];
  for (const name of new Set([...expected.containers, ...found.containers])) {
    if (expected.containers.has(name) !== found.containers.has(name)) {
      faults.push(`container ${name} ${found.containers.has(name) ? 'is there again' : 'is lost'}`);
    }
  }
  for (const path of new Set([...expected.blobs.keys(), ...found.blobs.keys()])) {
    const [one, other] = [expected.blobs.get(path), found.blobs.get(path)];
    if (!one || !other) {
      faults.push(`${path} ${other ? 'is there again' : 'is lost'}`);
      continue;
    }
    if (one.md5 !== other.md5) faults.push(`${path} has other bytes`);
    if (one.metadata !== other.metadata) faults.push(`${path} has metadata ${other.metadata}, not ${one.metadata}`);
    if (one.leased !== other.leased) faults.push(`${path} is ${other.leased ? '' : 'not '}leased`);
    if (one.etag ? one.etag !== other.etag : seen.has(other.etag ?? '')) {
      faults.push(`${path} has the ETag ${other.etag}, not ${one.etag ?? 'a new one'}`);
    }
  }
  return faults;
}

/** @param {ReturnType<import('./random.mjs').randomOf>} random @param {string} mark */
function contentOf(random, mark) {
  const length = random.chance(0.05) ? random.below(2 << 20) : random.below(random.chance(0.3) ? 40_000 : 4_000);
  return Buffer.alloc(length, `${mark} `);
}

/** @param {Uint8Array} bytes */
function md5Of(bytes) {
  return createHash('md5').update(bytes).digest('base64');
}

/** @param {string} path */
function leaseIdOf(path) {
  return createHash('md5')
    .update(path)
    .digest('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
