/** Requests about containers and blobs, whatever their size, each with the answer and the change of the world that it must have. */
import { bytesOf } from '../support/seeded-bytes.mjs';
import { leaseIdOf, md5Of } from './expected-state.mjs';

/**
 * @typedef {import('./expected-state.mjs').World} World
 * @typedef {import('./expected-state.mjs').Blob} Blob
 * @typedef {import('./expected-state.mjs').Taken} Taken
 * @typedef {ReturnType<import('../support/random.mjs').randomOf>} Random
 * @typedef {ReturnType<import('../support/signed-client.mjs').connect>} Client
 * @typedef {{ status: number, ask: () => Promise<import('../support/signed-client.mjs').Answer>, change: (next: World, etag: string | undefined) => void }} Step
 * @typedef {{ client: Client, random: Random, world: World, path: string, mark: string, keeps: boolean }} Scene
 *   `mark` is new in every step; `keeps` says whether what is deleted or replaced can be restored
 */

/** @param {Client} client @param {string} container @returns {Step} */
export function createContainer(client, container) {
  return {
    status: 201,
    ask: () => client.createContainer(container),
    change: (next) => next.containers.add(container),
  };
}

/** @param {Client} client @param {string} container @returns {Step} */
export function deleteContainer(client, container) {
  return {
    status: 202,
    ask: () => client.deleteContainer(container),
    change(next) {
      next.containers.delete(container);
      for (const paths of [next.blobs, next.deleted, next.staged, next.snapshots]) {
        for (const path of [...paths.keys()]) if (path.startsWith(`${container}/`)) paths.delete(path);
      }
    },
  };
}

/** @param {Scene} scene @param {number} length @param {boolean} ifMatch @returns {Step} */
export function putBlob({ client, world, path, mark, keeps }, length, ifMatch = false) {
  const blob = world.blobs.get(path);
  const bytes = bytesOf(mark, length);
  const md5 = md5Of([bytes]);
  const condition = ifMatch ? { 'if-match': blob?.etag ?? '' } : {};
  const headers = { ...leaseHeaders(path, blob), ...condition, 'x-ms-meta-serial': mark };
  return {
    status: 201,
    ask: () => client.putBlob(path, bytes, headers),
    change(next, etag) {
      replace(next, path, { md5, metadata: mark, leased: blob?.leased ?? false, etag, blocks: [] }, keeps);
    },
  };
}

/** @param {Scene} scene @param {Blob} blob @returns {Step} */
export function setMetadata({ client, path, mark }, blob) {
  const headers = { ...leaseHeaders(path, blob), 'x-ms-meta-serial': mark };
  return {
    status: 200,
    ask: () => client.send('PUT', `/${path}?comp=metadata`, { headers }),
    change: (next, etag) => next.blobs.set(path, { ...blob, metadata: mark, etag }),
  };
}

/** @param {Scene} scene @param {Blob} blob @returns {Step} */
export function turnLease({ client, path }, blob) {
  const act = blob.leased ? client.releaseLease : client.acquireLease;
  return {
    status: blob.leased ? 200 : 201,
    ask: () => act(path, leaseIdOf(path)),
    change: (next) => next.blobs.set(path, { ...blob, leased: !blob.leased }),
  };
}

/** @param {Scene} scene @returns {Step} */
export function deleteBlob({ client, world, path, keeps }) {
  return {
    status: 202,
    ask: () =>
      client.deleteBlob(path, {
        ...leaseHeaders(path, world.blobs.get(path)),
        ...(hasSnapshots(world, path) && { 'x-ms-delete-snapshots': 'include' }),
      }),
    change(next) {
      const blob = next.blobs.get(path);
      if (blob) forgetSnapshots(next, path, keeps);
      if (blob && keeps) next.deleted.set(path, { ...blob, leased: false });
      next.blobs.delete(path);
      next.staged.delete(path);
    },
  };
}

/** @param {Scene} scene @param {Blob} blob @returns {Step} */
export function snapshotBlob({ client, path }, { md5, metadata }) {
  return {
    status: 201,
    ask: () => client.send('PUT', `/${path}?comp=snapshot`),
    change: (next) => addState(next, path, { md5, metadata, isDeleted: false }),
  };
}

/** @param {Scene} scene @returns {Step} */
export function deleteSnapshots({ client, world, path, keeps }) {
  const headers = { ...leaseHeaders(path, world.blobs.get(path)), 'x-ms-delete-snapshots': 'only' };
  return {
    status: 202,
    ask: () => client.deleteBlob(path, headers),
    change: (next) => forgetSnapshots(next, path, keeps),
  };
}

/** @param {Scene} scene @returns {Step} */
export function undeleteBlob({ client, path }) {
  return {
    status: 200,
    ask: () => client.send('PUT', `/${path}?comp=undelete`),
    change(next) {
      const blob = next.deleted.get(path);
      if (blob) next.blobs.set(path, blob);
      next.deleted.delete(path);
      setStates(
        next,
        path,
        statesOf(next, path).map((state) => ({ ...state, isDeleted: false })),
      );
    },
  };
}

/** @param {Scene} scene @param {string} source @returns {Step} */
export function copyBlob({ client, world, path, mark, keeps }, source) {
  const from = /** @type {Blob} */ (world.blobs.get(source));
  const to = world.blobs.get(path);
  const headers = { ...leaseHeaders(path, to), 'x-ms-meta-serial': mark };
  return {
    status: 202,
    ask: () => client.copyBlob(source, path, headers),
    change(next, etag) {
      replace(next, path, { ...from, metadata: mark, leased: to?.leased ?? false, etag }, keeps);
    },
  };
}

/** @param {World} world @param {string} path */
export function hasSnapshots(world, path) {
  return statesOf(world, path).some(({ isDeleted }) => !isDeleted);
}

/** The former blob becomes a deleted state. One that was deleted already stays one. @param {World} next @param {string} path @param {Blob} blob @param {boolean} keeps */
export function replace(next, path, blob, keeps) {
  const former = next.deleted.get(path) ?? (keeps ? next.blobs.get(path) : undefined);
  if (former) addState(next, path, { md5: former.md5, metadata: former.metadata, isDeleted: true });
  next.deleted.delete(path);
  next.blobs.set(path, blob);
  next.staged.delete(path);
}

/** @param {World} world @param {string} path @returns {readonly Taken[]} */
function statesOf({ snapshots }, path) {
  return snapshots.get(path) ?? [];
}

/** @param {World} next @param {string} path @param {readonly Taken[]} states */
function setStates(next, path, states) {
  if (states.length > 0) next.snapshots.set(path, states);
  else next.snapshots.delete(path);
}

/** @param {World} next @param {string} path @param {Taken} state */
function addState(next, path, state) {
  setStates(next, path, [...statesOf(next, path), state]);
}

/** @param {World} next @param {string} path @param {boolean} keeps */
function forgetSnapshots(next, path, keeps) {
  const states = statesOf(next, path);
  setStates(
    next,
    path,
    keeps ? states.map((state) => ({ ...state, isDeleted: true })) : states.filter(({ isDeleted }) => isDeleted),
  );
}

/** @param {string} path @param {Blob | undefined} blob @returns {Record<string, string>} */
export function leaseHeaders(path, blob) {
  return blob?.leased ? { 'x-ms-lease-id': leaseIdOf(path) } : {};
}
