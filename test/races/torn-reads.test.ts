import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { randomOf } from '../support/random.mjs';
import { bytesOf } from '../support/seeded-bytes.mjs';
import { type Answer, onEveryDisk, onEveryEngine, type Running } from '../support/test-server.ts';

const MIB = 2 ** 20;
const SIZE = 4 * MIB;
/** `npm run test:large` hunts for longer. */
const length = Number(process.env.HOLDFAST_RACE_LENGTH ?? 1);
const writesEach = 8 * length;
const timeout = 120_000 * length;

/** An idle connection must not be closed just when it is used again. */
const options = { start: { blobKeepAliveSeconds: 600 }, heavy: true };

describe('A reader of a blob of 4 MiB', () => {
  onEveryEngine((running) => {
    it('gets the bytes of just the write whose ETag it gets, while two overwrite it', { timeout }, async () => {
      const { containerName } = await running.newContainer();
      await hunt(running, `/${containerName}/blob`, overwriting(running), contentOfWrite);
    });

    it('gets the bytes of just the commit whose ETag it gets, while two commit its blocks in other orders', {
      timeout,
    }, async () => {
      const { containerName } = await running.newContainer();
      const path = `/${containerName}/blob`;
      await putBlocks(running, path);
      await hunt(running, path, reordering(running), contentOfOrder);
    });
  }, options);

  describe('while extents are compacted', () => {
    onEveryDisk((running) => {
      it('gets the same, and untouched blobs stay as they are', { timeout: 2 * timeout }, async () => {
        const { containerName } = await running.newContainer();
        const sparse = await fillSparsely(running, `/${containerName}`);
        await putBlocks(running, `/${containerName}/ordered`);
        for (let gone = 0; gone === 0; ) {
          await Promise.all([
            hunt(running, `/${containerName}/blob`, overwriting(running), contentOfWrite),
            hunt(running, `/${containerName}/ordered`, reordering(running), contentOfOrder),
            sparse.verify(),
          ]);
          gone = sparse.gone();
        }
        await sparse.verify();
      });
    }, options);
  });

  describe('that reads slowly', () => {
    onEveryEngine((running) => {
      it('gets all of what it began with, though that was overwritten and deleted meanwhile', { timeout }, async () => {
        const { containerName } = await running.newContainer();
        const path = `/${containerName}/blob`;
        // More blocks than one lookup of chunk references, and more bytes than the socket buffers hold.
        const ids = Array.from({ length: 160 }, (_, at) => String(at).padStart(3, '0'));
        for (const id of ids) await putBlock(running, path, id, bytesOf(id, MIB / 4));
        expect((await commit(running, path, ids)).status).toBe(201);

        const reader = running.socket();
        reader.write(running.head('GET', path, { Connection: 'close' }));
        const [first] = (await once(reader, 'data')) as [Buffer];
        reader.pause();
        for (let at = 0; at < 6; at++) {
          expect((await overwriting(running)(path, `late-${at}`)).status).toBe(201);
          expect((await running.request('DELETE', path)).status).toBe(202);
        }
        const chunks = [first];
        reader.on('data', (chunk) => chunks.push(chunk)).resume();
        await once(reader, 'close');
        const answer = Buffer.concat(chunks);
        const body = answer.subarray(answer.indexOf('\r\n\r\n') + 4);
        expectBytes(body, Buffer.concat(ids.map((id) => bytesOf(id, MIB / 4))), path);
      });
    }, options);
  });
});

type Write = (path: string, version: string) => Promise<Answer>;

/** The metadata names the version, so that one answer has its bytes, its ETag and the write that they must be of. */
function overwriting(running: Running): Write {
  return (path, version) =>
    running.request('PUT', path, {
      headers: { 'x-ms-blob-type': 'BlockBlob', 'x-ms-meta-version': version },
      body: contentOfWrite(version),
    });
}

/** The bytes of a version from one offset to before another. */
type ContentOf = (version: string, from?: number, to?: number) => Buffer;

const contentOfWrite: ContentOf = (version, from = 0, to = SIZE) => bytesOf(version, to - from, from);

const blockIds = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
const BLOCK_BYTES = SIZE / blockIds.length;
const blocks = new Map(blockIds.map((id) => [id, bytesOf(`block ${id}`, BLOCK_BYTES)]));

async function putBlocks(running: Running, path: string): Promise<void> {
  for (const [id, bytes] of blocks) await putBlock(running, path, id, bytes);
  expect((await reordering(running)(path, '0-0')).status).toBe(201);
}

function reordering(running: Running): Write {
  return (path, version) => commit(running, path, [...orderOf(version)], version);
}

/** All blocks, each once: a block that a list leaves out is lost. */
function orderOf(version: string): string {
  const key = (id: string) => bytesOf(`${version} ${id}`, 8).toString('hex');
  return blockIds.toSorted((one, other) => (key(one) < key(other) ? -1 : 1)).join('');
}

const contentOfOrder: ContentOf = (version, from = 0, to = SIZE) =>
  Buffer.concat(
    [...orderOf(version)].map((id, at) => {
      const begin = at * BLOCK_BYTES;
      return blocks.get(id)!.subarray(Math.max(from - begin, 0), Math.max(to - begin, 0));
    }),
  );

/** Two write versions, many read them; each answer is verified against the version that it names. */
async function hunt(running: Running, path: string, write: Write, contentOf: ContentOf): Promise<void> {
  const versions = new Map<string, string>();
  let writing = 2;

  function witness(etag: string, version: string): void {
    expect(versions.get(etag) ?? version).toBe(version);
    versions.set(etag, version);
  }

  const writer = async (number: number) => {
    for (let at = 0; at < writesEach; at++) {
      const version = `${number}-${at}`;
      const { status, headers } = await write(path, version);
      expect(status).toBe(201);
      witness(headers.etag!, version);
    }
    writing--;
  };

  /** The ETag; undefined: there is none, or another one. */
  const read = async (from: number, to: number, ifMatch?: string): Promise<string | undefined> => {
    const range = to - from === SIZE ? undefined : `bytes=${from}-${to - 1}`;
    const answer = await running.request('GET', path, { headers: { 'If-Match': ifMatch, 'x-ms-range': range } });
    if (answer.status === (ifMatch === undefined ? 404 : 412)) return undefined;
    expect(answer.status).toBe(range === undefined ? 200 : 206);
    const { etag, 'x-ms-meta-version': version } = answer.headers as Record<string, string>;
    witness(etag!, version!);
    expectBytes(answer.bytes, contentOf(version!, from, to), `${path} from ${from}`);
    return etag;
  };

  const wholeReader = async () => {
    while (writing > 0) await read(0, SIZE);
  };

  /** Short ranges, so frequent that some read is always between lookup and read. */
  const littleReader = async (seed: number) => {
    const random = randomOf(seed);
    while (writing > 0) {
      const from = random.below(SIZE - 1_000);
      await read(from, from + 1_000);
    }
  };

  /** Piece by piece, as long as it is the same blob. */
  const rangeReader = async (seed: number) => {
    const random = randomOf(seed);
    while (writing > 0) {
      let etag = await read(0, MIB);
      for (const first = etag; etag !== undefined && writing > 0; ) {
        const from = random.below(SIZE);
        etag = await read(from, Math.min(SIZE, from + 1 + random.below(MIB)), first);
        if (etag !== undefined) expect(etag).toBe(first);
      }
    }
  };

  const little = Array.from({ length: 8 }, (_, seed) => littleReader(seed));
  await Promise.all([writer(1), writer(2), wholeReader(), rangeReader(1), ...little]);
}

/** Fills extents with blobs that are deleted, and a few that stay: no extent can be removed without compaction. */
async function fillSparsely(running: Running, container: string) {
  const put = overwriting(running);
  const stays = Array.from({ length: 7 }, (_, at) => `stays-${at}`);
  const goes = ['x', 'y', 'z'].map((name) => `${container}/${name}`);
  const body = Buffer.alloc(4 * SIZE);
  for (const version of stays) {
    for (const path of goes) await running.request('PUT', path, { headers: { 'x-ms-blob-type': 'BlockBlob' }, body });
    expect((await put(`${container}/${version}`, version)).status).toBe(201);
  }
  for (const path of goes) expect((await running.request('DELETE', path)).status).toBe(202);
  const folder = running.extents;
  const filled = readdirSync(folder);
  return {
    gone: () => filled.filter((name) => !existsSync(join(folder, name))).length,
    async verify() {
      for (const version of stays) {
        const { status, bytes } = await running.request('GET', `${container}/${version}`);
        expect(status).toBe(200);
        expectBytes(bytes, contentOfWrite(version), version);
      }
    },
  };
}

async function putBlock(running: Running, path: string, id: string, body: Buffer): Promise<void> {
  const blockId = encodeURIComponent(Buffer.from(id).toString('base64'));
  const { status } = await running.request('PUT', `${path}?comp=block&blockid=${blockId}`, { body });
  expect(status).toBe(201);
}

function commit(running: Running, path: string, ids: readonly string[], version = ''): Promise<Answer> {
  const list = ids.map((id) => `<Latest>${Buffer.from(id).toString('base64')}</Latest>`);
  const body = `<BlockList>${list.join('')}</BlockList>`;
  const headers = version === '' ? {} : { 'x-ms-meta-version': version };
  return running.request('PUT', `${path}?comp=blocklist`, { headers, body });
}

/** A printed difference of megabytes is useless. */
function expectBytes(found: Buffer, wanted: Buffer, what: string): void {
  if (found.equals(wanted)) return;
  const length = Math.min(found.length, wanted.length);
  let from = 0;
  while (from < length && found.subarray(from, from + 4096).equals(wanted.subarray(from, from + 4096))) from += 4096;
  expect.unreachable(`${what}: ${found.length} of ${wanted.length} bytes, other ones in the 4 KiB from ${from} on`);
}
