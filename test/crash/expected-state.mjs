/** Expected and actual contents of a server, and the difference. */
import { createHash } from 'node:crypto';

/**
 * @typedef {{ id: string, seed: string, length: number }} Block its bytes are those of the seed
 * @typedef {{ md5: string, metadata: string | undefined, leased: boolean, etag: string | undefined, blocks: readonly Block[] }} Blob
 *   `blocks` are those that it was committed from
 * @typedef {{ md5: string, metadata: string | undefined, isDeleted: boolean }} Taken a snapshot, or a state that was replaced
 * @typedef {{ containers: Set<string>, blobs: Map<string, Blob>, deleted: Map<string, Blob>, staged: Map<string, ReadonlyMap<string, Block>>, snapshots: Map<string, readonly Taken[]> }} World
 *   `deleted` are blobs that can be restored; `staged` are uncommitted blocks by the path of their blob and their id; `snapshots` are in their order
 */

/** @returns {World} */
export function newWorld() {
  return { containers: new Set(), blobs: new Map(), deleted: new Map(), staged: new Map(), snapshots: new Map() };
}

/** @param {World} world @returns {World} */
export function copyOf({ containers, blobs, deleted, staged, snapshots }) {
  return {
    ...{ containers: new Set(containers), blobs: new Map(blobs), deleted: new Map(deleted) },
    ...{ staged: new Map(staged), snapshots: new Map(snapshots) },
  };
}

/**
 * All that the server lists of these containers, or the inconsistencies within the listing itself.
 * @param {ReturnType<import('../support/signed-client.mjs').connect>} client
 * @param {string[]} containers
 * @returns {Promise<{ world: World } | string>}
 */
export async function observe(client, containers) {
  const world = newWorld();
  for (const container of containers) {
    const { status } = await client.send('GET', `/${container}?restype=container`);
    if (status !== 200 && status !== 404) return `${container}: its properties were answered ${status}`;
    if (status === 404) continue;
    world.containers.add(container);
    for (const name of await client.listBlobs(container, 'uncommittedblobs')) {
      const fault = await observeBlob(client, `${container}/${name}`, world);
      if (fault) return fault;
    }
    const fault = await observeStates(client, container, world);
    if (fault) return fault;
  }
  return { world };
}

/**
 * @param {ReturnType<import('../support/signed-client.mjs').connect>} client
 * @param {string} container
 * @param {World} world
 */
async function observeStates(client, container, world) {
  for (const { name, moment, isDeleted, metadata } of await listStates(client, container)) {
    const path = `${container}/${name}`;
    if (isDeleted && moment === undefined) world.deleted.set(path, { ...UNREADABLE, metadata });
    if (moment === undefined) continue;
    const { status, body: bytes } = await client.getBlob(`${path}?snapshot=${moment}`);
    if (status !== (isDeleted ? 404 : 200))
      return `${path}: its ${isDeleted ? 'deleted ' : ''}snapshot is listed, and answered ${status}`;
    if (!isDeleted && !world.blobs.has(path)) return `${path}: it is not there, and has a snapshot`;
    const taken = { md5: isDeleted ? '' : md5Of([bytes]), metadata, isDeleted };
    world.snapshots.set(path, [...(world.snapshots.get(path) ?? []), taken]);
  }
  return undefined;
}

/** What can be seen of a deleted blob besides its metadata. */
const UNREADABLE = { md5: '', leased: false, etag: undefined, blocks: [] };

/** @param {ReturnType<import('../support/signed-client.mjs').connect>} client @param {string} container */
async function listStates(client, container) {
  const found = [];
  const each =
    /<Name>([^<]*)<\/Name>(?:<Snapshot>([^<]*)<\/Snapshot>)?(<Deleted>true<\/Deleted>)?<Properties>.*?<\/Blob>/gs;
  for (let marker = ''; ; ) {
    const query = `restype=container&comp=list&include=snapshots,deleted,metadata&marker=${marker}`;
    const { status, body } = await client.send('GET', `/${container}?${query}`);
    if (status !== 200) throw new Error(`List Blobs was answered ${status}: ${body}`);
    const text = body.toString();
    for (const [item, name, moment, deleted] of text.matchAll(each)) {
      const metadata = /<serial>([^<]*)</.exec(item)?.[1];
      found.push({ name, moment, isDeleted: deleted !== undefined, metadata });
    }
    marker = encodeURIComponent(/<NextMarker>([^<]+)</.exec(text)?.[1] ?? '');
    if (!marker) return found;
  }
}

/**
 * @param {ReturnType<import('../support/signed-client.mjs').connect>} client
 * @param {string} path
 * @param {World} world
 */
async function observeBlob(client, path, world) {
  const lists = await client.getBlockList(path);
  const { status, headers, body, code } = await client.getBlob(path);
  if (lists.uncommitted.length > 0)
    world.staged.set(path, new Map(lists.uncommitted.map((block) => [block.id, block])));
  if (status === 404 && lists.uncommitted.length > 0) return undefined;
  if (status !== 200) return `${path}: it is listed, and answered ${status} ${code}`;
  const md5 = md5Of([body]);
  if (headers['content-md5'] !== undefined && headers['content-md5'] !== md5)
    return `${path}: its bytes are not those of its Content-MD5`;
  const leased = headers['x-ms-lease-state'] === 'leased';
  if (leased) {
    const held = await client.getBlob(path, { 'x-ms-lease-id': leaseIdOf(path), range: 'bytes=0-0' });
    if (held.status >= 300 && held.status !== 416) return `${path}: its lease is another one (${held.code})`;
    const without = await client.putBlob(path, Buffer.from('x'));
    if (without.code !== 'LeaseIdMissing') return `${path}: its lease does not keep writers out (${without.status})`;
  }
  const metadata = String(headers['x-ms-meta-serial']);
  world.blobs.set(path, { md5, metadata, leased, etag: headers.etag, blocks: lists.committed });
  return undefined;
}

/**
 * An expected blob without an ETag may have any that was never seen.
 * @param {World} expected
 * @param {World} found
 * @param {Set<string>} seen
 */
export function differences(expected, found, seen) {
  const faults = [];
  for (const name of new Set([...expected.containers, ...found.containers])) {
    if (expected.containers.has(name) !== found.containers.has(name)) {
      faults.push(`container ${name} ${found.containers.has(name) ? 'is there again' : 'is lost'}`);
    }
  }
  for (const path of new Set([...expected.blobs.keys(), ...found.blobs.keys()])) {
    const [one, other] = [expected.blobs.get(path), found.blobs.get(path)];
    if (one && other) faults.push(...blobDifferences(path, one, other, seen));
    else faults.push(`${path} ${other ? 'is there again' : 'is lost'}`);
  }
  for (const path of new Set([...expected.staged.keys(), ...found.staged.keys()])) {
    const [one, other] = [expected, found].map(({ staged }) => [...(staged.get(path)?.values() ?? [])]);
    const wrong = blockDifference(inOrder(one ?? []), inOrder(other ?? []));
    if (wrong) faults.push(`${path}: of its uncommitted blocks, ${wrong}`);
  }
  for (const path of new Set([...expected.snapshots.keys(), ...found.snapshots.keys()])) {
    const [one, other] = [expected, found].map(({ snapshots }) =>
      (snapshots.get(path) ?? []).map(describeTaken).join(),
    );
    if (one !== other) faults.push(`${path}: its snapshots are ${other}, not ${one}`);
  }
  for (const path of new Set([...expected.deleted.keys(), ...found.deleted.keys()])) {
    const [one, other] = [expected, found].map(({ deleted }) => deleted.get(path)?.metadata ?? 'none');
    if (one !== other) faults.push(`${path}: the deleted blob is ${other}, not ${one}`);
  }
  return faults;
}

/** The bytes of a deleted one cannot be read. @param {Taken} taken */
function describeTaken({ md5, metadata, isDeleted }) {
  return isDeleted ? `deleted ${metadata}` : `${metadata} ${md5}`;
}

/** @param {string} path @param {Blob} one @param {Blob} other @param {Set<string>} seen */
function blobDifferences(path, one, other, seen) {
  const faults = [];
  if (one.md5 !== other.md5) faults.push(`${path} has other bytes`);
  if (one.metadata !== other.metadata) faults.push(`${path} has metadata ${other.metadata}, not ${one.metadata}`);
  if (one.leased !== other.leased) faults.push(`${path} is ${other.leased ? '' : 'not '}leased`);
  if (one.etag ? one.etag !== other.etag : seen.has(other.etag ?? '')) {
    faults.push(`${path} has the ETag ${other.etag}, not ${one.etag ?? 'a new one'}`);
  }
  const wrong = blockDifference(one.blocks, other.blocks);
  if (wrong) faults.push(`${path}: of its blocks, ${wrong}`);
  return faults;
}

/** @param {readonly Block[]} expected @param {readonly Block[]} found */
function blockDifference(expected, found) {
  const text = (/** @type {Block | undefined} */ block) => (block ? `${block.id} of ${block.length} bytes` : 'none');
  for (let at = 0; at < Math.max(expected.length, found.length); at++) {
    const [one, other] = [text(expected[at]), text(found[at])];
    if (one !== other) return `number ${at} is ${other}, not ${one}`;
  }
  return undefined;
}

/** @param {readonly Block[]} blocks */
function inOrder(blocks) {
  return [...blocks].sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** @param {Iterable<Uint8Array>} pieces */
export function md5Of(pieces) {
  const hash = createHash('md5');
  for (const piece of pieces) hash.update(piece);
  return hash.digest('base64');
}

/** @param {string} path */
export function leaseIdOf(path) {
  return createHash('md5')
    .update(path)
    .digest('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
