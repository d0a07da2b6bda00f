/** Blocks, and lists of all that can be named: staged and committed blocks, in any order, some of them again and again. */
import { bytesOf } from '../support/seeded-bytes.mjs';
import { md5Of } from './expected-state.mjs';
import { leaseHeaders, replace } from './steps.mjs';

/**
 * @typedef {import('./steps.mjs').Scene} Scene
 * @typedef {import('./steps.mjs').Step} Step
 * @typedef {import('./expected-state.mjs').Block} Block
 */

const KIB = 2 ** 10;
const MIB = 2 ** 20;
const ABREAST = 4;
/** Entries of a list. The service commits lists of more than 400 entries in slices. */
const LONG = 401;
const CONTENT_BYTES_MAX = 20 * MIB;

/** A few at one time. An id that is in use may be put again, with another length. @param {Scene} scene @returns {Step[]} */
export function putBlocks(scene) {
  const { random, world, path, mark } = scene;
  const known = [...(world.blobs.get(path)?.blocks ?? []), ...(world.staged.get(path)?.values() ?? [])];
  if (known.length > 0 && random.chance(0.2)) {
    const { id } = random.oneOf(known);
    const length = Math.max(...known.filter((block) => block.id === id).map((block) => block.length));
    return [putBlock(scene, { id, seed: mark, length: length + 1 })];
  }
  // Many small ones now and then, so that a long list need not name one twice.
  const isSmall = random.chance(0.5);
  return Array.from({ length: 1 + random.below(ABREAST) }, (_, at) => {
    const length = 1 + random.below(isSmall ? 40 * KIB : random.chance(0.1) ? 9 * MIB : MIB);
    return putBlock(scene, { id: blockId(`${mark}-${at}`), seed: `${mark}-${at}`, length });
  });
}

/** @param {Scene} scene @param {Block} block @returns {Step} */
function putBlock({ client, world, path }, block) {
  const headers = leaseHeaders(path, world.blobs.get(path));
  return {
    status: 201,
    ask: () => client.putBlock(path, block.id, bytesOf(block.seed, block.length), headers),
    change: (next) => next.staged.set(path, new Map(next.staged.get(path)).set(block.id, block)),
  };
}

/** @param {Scene} scene @returns {Step} */
export function putBlockList({ client, random, world, path, mark, keeps }) {
  const blob = world.blobs.get(path);
  const entries = chooseBlocks(random, blob?.blocks ?? [], world.staged.get(path) ?? new Map());
  const blocks = entries.map(({ block }) => block);
  const md5 = md5Of(bytesOfAll(blocks));
  const list = entries.map(({ source, block }) => `<${source}>${block.id}</${source}>`).join('');
  const headers = { ...leaseHeaders(path, blob), 'x-ms-meta-serial': mark };
  return {
    status: 201,
    ask: () => client.putBlockList(path, list, headers),
    change(next, etag) {
      replace(next, path, { md5, metadata: mark, leased: blob?.leased ?? false, etag, blocks }, keeps);
    },
  };
}

/**
 * @param {import('./steps.mjs').Random} random
 * @param {readonly Block[]} committed
 * @param {ReadonlyMap<string, Block>} staged
 */
function chooseBlocks(random, committed, staged) {
  const before = new Map(committed.map((block) => [block.id, block]));
  // One for an id: a list that means two blocks by it is not clear.
  const all = [...new Set([...before.keys(), ...staged.keys()])].map((id) => {
    const [old, recent] = [before.get(id), staged.get(id)];
    const source = random.oneOf(['Latest', ...(old ? ['Committed'] : []), ...(recent ? ['Uncommitted'] : [])]);
    const block = /** @type {Block} */ (source === 'Committed' ? old : (recent ?? old));
    return { source, block };
  });
  const isLong = random.chance(0.3);
  const count = isLong ? LONG + random.below(300) : Math.ceil(all.length * (random.below(1000) / 1000));
  const entries = [];
  let bytes = 0;
  const small = all.filter(({ block }) => block.length * LONG < 2 * CONTENT_BYTES_MAX);
  for (let at = 0; at < count && all.length > 0; at++) {
    const entry = random.oneOf(isLong && small.length > 0 ? small : all);
    if (bytes + entry.block.length > CONTENT_BYTES_MAX) continue;
    bytes += entry.block.length;
    entries.push(entry);
  }
  return entries;
}

/** @param {readonly Block[]} blocks */
function* bytesOfAll(blocks) {
  /** @type {Map<Block, Buffer>} */
  const made = new Map();
  for (const block of blocks) {
    const bytes = made.get(block) ?? bytesOf(block.seed, block.length);
    made.set(block, bytes);
    yield bytes;
  }
}

/** All of one length. @param {string} text */
function blockId(text) {
  return Buffer.from(text.padStart(24, '.')).toString('base64');
}
