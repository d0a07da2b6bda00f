/** One client's blobs of all sizes: it puts, overwrites and deletes them, and knows the expected content of each. */
import { bytesOf } from '../support/seeded-bytes.mjs';

const KIB = 2 ** 10;
const MIB = 2 ** 20;
const SIZE_MIN = 20 * KIB;
const SIZE_MAX = 64 * MIB;
/** All contents are stretches of this. */
const source = bytesOf('blobs', SIZE_MAX + 16 * MIB);

/**
 * @param {ReturnType<import('../support/signed-client.mjs').connect>} client
 * @param {string} prefix of the blobs' paths
 * @param {ReturnType<import('../support/random.mjs').randomOf>} random
 */
export function newBlobs(client, prefix, random) {
  /** @type {Map<string, Buffer>} path to content */
  const blobs = new Map();
  /** @type {string[]} */
  let faults = [];
  let slowest = 0;
  let made = 0;

  /** @param {string} what @param {number} wanted @param {Promise<import('../support/signed-client.mjs').Answer>} sent */
  async function timed(what, wanted, sent) {
    const started = performance.now();
    const answer = await sent;
    slowest = Math.max(slowest, performance.now() - started);
    if (answer.status !== wanted) faults.push(`${what} was answered ${answer.status} ${answer.code}`);
    return answer;
  }

  /** @param {string} path @param {Buffer} content */
  async function putBlocks(path, content) {
    const blockBytes = Math.max(Math.min(random.below(8 * MIB), content.length), 64 * KIB);
    const ids = [];
    for (let at = 0; at < content.length; at += blockBytes) {
      const id = Buffer.from(`block ${String(ids.length).padStart(6, '0')}`).toString('base64');
      await putBlock(path, id, content.subarray(at, at + blockBytes));
      ids.push(id);
    }
    // A block that the list leaves out goes with the commit.
    if (random.chance(0.3))
      await putBlock(path, Buffer.from('block unused').toString('base64'), source.subarray(0, MIB));
    const list = ids.map((id) => `<Latest>${id}</Latest>`).join('');
    const body = Buffer.from(`<BlockList>${list}</BlockList>`);
    await timed('Put Block List', 201, client.send('PUT', `/${path}?comp=blocklist`, { body }));
  }

  /** @param {string} path @param {string} id @param {Buffer} body */
  function putBlock(path, id, body) {
    const target = `/${path}?comp=block&blockid=${encodeURIComponent(id)}`;
    return timed('Put Block', 201, client.send('PUT', target, { body }));
  }

  /** Breaks the connection in the middle of the body. @param {string} path @param {Buffer} content */
  async function giveUp(path, content) {
    const headers = { 'x-ms-blob-type': 'BlockBlob', 'content-length': String(content.length) };
    await client
      .send('PUT', `/${path}`, {
        headers,
        onRequest: (outgoing) => {
          outgoing.write(content.subarray(0, content.length >> 1), () => outgoing.destroy());
        },
      })
      .catch(() => {});
  }

  function someContent() {
    const size = Math.floor(SIZE_MIN * (SIZE_MAX / SIZE_MIN) ** (random.below(1e6) / 1e6));
    const at = random.below(source.length - size);
    return source.subarray(at, at + size);
  }

  return {
    /** @param {number} bytes at least */
    async write(bytes) {
      for (let written = 0; written < bytes; ) {
        const content = someContent();
        written += content.length;
        const isNew = blobs.size === 0 || random.chance(0.75);
        const path = isNew ? `${prefix}-${made++}` : random.oneOf([...blobs.keys()]);
        if (random.chance(0.05)) {
          await giveUp(path, content);
          continue;
        }
        if (random.chance(0.4)) await putBlocks(path, content);
        else await timed('Put Blob', 201, client.putBlob(path, content));
        blobs.set(path, content);
      }
    },
    /** @param {number} share */
    async remove(share) {
      for (const path of [...blobs.keys()]) {
        if (!random.chance(share)) continue;
        await timed('Delete Blob', 202, client.deleteBlob(path));
        blobs.delete(path);
      }
    },
    async verify() {
      for (const [path, content] of blobs) {
        const { body } = await timed('Get Blob', 200, client.getBlob(path));
        if (!body.equals(content)) faults.push(`${path} has other bytes`);
      }
    },
    live: () => [...blobs.values()].reduce((sum, { length }) => sum + length, 0),
    /** Since the last call. */
    figures() {
      const figures = { slowest, faults };
      slowest = 0;
      faults = [];
      return figures;
    },
    close: client.close,
  };
}
