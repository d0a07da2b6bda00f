/**
 * One client that writes and knows the expected state: what every answer confirmed, and the requests that were never
 * answered, each of which happened or did not. Nothing else may be found after a crash.
 */
import { putBlockList, putBlocks } from './block-steps.mjs';
import { copyOf, differences, newWorld, observe } from './expected-state.mjs';
import {
  copyBlob,
  createContainer,
  deleteBlob,
  deleteContainer,
  deleteSnapshots,
  hasSnapshots,
  putBlob,
  setMetadata,
  snapshotBlob,
  turnLease,
  undeleteBlob,
} from './steps.mjs';

/**
 * @typedef {import('./steps.mjs').Step} Step
 * @typedef {import('./steps.mjs').Scene} Scene
 * @typedef {import('./steps.mjs').Client} Client
 * @typedef {import('./steps.mjs').Random} Random
 */

const KIB = 2 ** 10;
const MIB = 2 ** 20;

/** @param {number} number */
export function newWriter(number) {
  const [home, passing, large] = [`home-${number}`, `passing-${number}`, `large-${number}`];
  const containers = [home, passing, large];
  let world = newWorld();
  /** @type {Set<Step>} */
  const unanswered = new Set();
  /** Every ETag that was ever seen: none comes twice. @type {Set<string>} */
  const etags = new Set();
  let acknowledged = 0;
  let serial = 0;

  /** The next requests, to be sent at one time. @param {Client} client @param {Random} random @param {boolean} keeps @returns {Step[]} */
  function newSteps(client, random, keeps) {
    const container = random.chance(0.4) ? large : random.chance(0.8) ? home : passing;
    const path = `${container}/blob-${random.below(container === large ? 5 : container === home ? 24 : 4)}`;
    if (!world.containers.has(container)) return [createContainer(client, container)];
    // What is kept of large blobs goes with their container.
    const passes = container === passing ? 0.2 : container === large ? 0.02 : 0;
    if (random.chance(passes)) return [deleteContainer(client, container)];
    const scene = { client, random, world, path, mark: `${number}-${serial++}`, keeps };
    return container === large ? largeSteps(scene) : [smallStep(scene)];
  }

  /** @param {Scene} scene @returns {Step} */
  function smallStep(scene) {
    const { random, path } = scene;
    const blob = world.blobs.get(path);
    const kind = random.oneOf([
      ...['put', 'put', 'put', 'if-match', 'metadata', 'lease', 'delete', 'snapshot', 'snapshots', 'undelete'],
    ]);
    if (kind === 'undelete' && (blob || world.deleted.has(path))) return undeleteBlob(scene);
    if (blob && kind === 'metadata') return setMetadata(scene, blob);
    if (blob && kind === 'lease') return turnLease(scene, blob);
    if (blob && kind === 'delete') return deleteBlob(scene);
    if (blob && kind === 'snapshot') return snapshotBlob(scene, blob);
    if (kind === 'snapshots' && hasSnapshots(world, path)) return deleteSnapshots(scene);
    const length = random.below(random.chance(0.3) ? 40_000 : 4_000);
    return putBlob(scene, length, blob !== undefined && kind === 'if-match');
  }

  /** @param {Scene} scene @returns {Step[]} */
  function largeSteps(scene) {
    const { random, path } = scene;
    const blob = world.blobs.get(path);
    const kind = random.oneOf([
      ...['put', 'block', 'block', 'block', 'block', 'list', 'list', 'copy', 'delete', 'lease', 'snapshot'],
    ]);
    if (kind === 'block') return putBlocks(scene);
    if (kind === 'list' && (blob?.blocks.length || world.staged.has(path))) return [putBlockList(scene)];
    const source = random.oneOf([...world.blobs.keys()]);
    if (kind === 'copy' && source) return [copyBlob(scene, source)];
    if (kind === 'delete' && (blob || world.staged.has(path))) return [deleteBlob(scene)];
    if (kind === 'lease' && blob) return [turnLease(scene, blob)];
    if (kind === 'snapshot' && blob) return [snapshotBlob(scene, blob)];
    return [putBlob(scene, largeLength(random))];
  }

  /** @param {Step} step */
  async function take(step) {
    const { status, ask, change } = step;
    unanswered.add(step);
    const answer = await ask();
    if (answer.status !== status)
      throw new Error(`answered ${answer.status} ${answer.code}, not ${status}: ${answer.body}`);
    world = copyOf(world);
    change(world, answer.headers.etag);
    unanswered.delete(step);
    acknowledged++;
  }

  return {
    acknowledged: () => acknowledged,

    /**
     * Writes until the server is gone.
     * @param {Client} client @param {Random} random @param {{ keeps: boolean, isOver: () => boolean }} options `keeps` is the policy of soft delete
     */
    async write(client, random, { keeps, isOver }) {
      while (!isOver()) {
        const results = await Promise.allSettled(newSteps(client, random, keeps).map(take));
        const failure = results.find((result) => result.status === 'rejected');
        if (!failure) continue;
        if (failure.reason.code || isOver()) return;
        throw failure.reason;
      }
    },

    /** Differences between the server and the expected state, as text. @param {Client} client */
    async verify(client) {
      const found = await observe(client, containers);
      if (typeof found === 'string') return [found];
      const possible = worldsAfter(world, [...unanswered]);
      const right = possible.find((one) => differences(one, found.world, etags).length === 0);
      if (!right) return differences(world, found.world, etags);
      for (const [path, blob] of right.blobs) {
        const { etag } = /** @type {import('./expected-state.mjs').Blob} */ (found.world.blobs.get(path));
        right.blobs.set(path, { ...blob, etag });
        if (etag) etags.add(etag);
      }
      world = right;
      unanswered.clear();
      return [];
    },

    /** @param {Client} client */
    async removeAll(client) {
      for (const container of [...world.containers]) await take(deleteContainer(client, container));
    },
  };
}

/** With every choice of the requests that may have happened. @param {import('./expected-state.mjs').World} world @param {Step[]} steps */
function worldsAfter(world, steps) {
  let worlds = [world];
  for (const { change } of steps) {
    worlds = worlds.flatMap((one) => {
      const next = copyOf(one);
      change(next, undefined);
      return [one, next];
    });
  }
  return worlds;
}

/** From 20 KiB to 20 MiB, a small one as often as a large one. @param {Random} random */
function largeLength(random) {
  return Math.floor(20 * KIB * (MIB / KIB) ** (random.below(1e6) / 1e6));
}
