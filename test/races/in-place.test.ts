/** Append and page blobs under many clients: nothing is lost, and what anyone sees is one state, that of its ETag. */
import { once } from 'node:events';
import { check } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { PageReplay } from '../support/page-replay.ts';
import { randomOf } from '../support/random.mjs';
import { bytesOf } from '../support/seeded-bytes.mjs';
import { type Answer, onEveryDisk, type Running } from '../support/test-server.ts';

const MIB = 2 ** 20;
const PAGE = 512;
/** An idle connection must not be closed just when it is used again. */
const options = { start: { blobKeepAliveSeconds: 600 } };

describe('An append blob', { timeout: 120_000 }, () => {
  onEveryDisk((running) => {
    it('to which 16 clients append 50 times each has all of it, in the order of the offsets', async () => {
      const blob = await newAppendBlob(running);
      const appends = new Map<number, { text: string; etag: string; blocks: number }>();
      const byEtag = new Map<string, number>();
      let appending = 16;
      const appender = async (client: number) => {
        let last = -1;
        for (let at = 0; at < 50; at++) {
          const text = `<${client}:${at}>`.padEnd(lengthOfAppend(client, at), '.');
          const { etag, offset, blocks } = await blob.append(text);
          expect(appends.has(offset)).toBe(false);
          appends.set(offset, { text, etag, blocks });
          byEtag.set(etag, offset + text.length);
          expect(offset).toBeGreaterThan(last);
          last = offset;
        }
        appending--;
      };
      const seen: { etag: string; text: string }[] = [];
      const reader = async () => {
        while (appending > 0) {
          const { headers, text } = await running.request('GET', blob.path);
          expect(text.length).toBe(Number(headers['content-length']));
          seen.push({ etag: headers.etag!, text });
        }
      };
      await Promise.all([...Array.from({ length: 16 }, (_, client) => appender(client)), reader()]);

      const ordered = [...appends].sort(([one], [other]) => one - other);
      const whole = ordered.map(([, { text }]) => text).join('');
      const { text, headers } = await running.request('GET', blob.path);
      expect(text === whole).toBe(true);
      expect(headers['x-ms-blob-committed-block-count']).toBe('800');
      let end = 0;
      for (const [at, [offset, append]] of ordered.entries()) {
        expect([offset, append.blocks]).toEqual([end, at + 1]);
        end += append.text.length;
      }
      const etags = ordered.map(([, { etag }]) => etag);
      expect(etags).toEqual([...new Set(etags)].sort());
      for (const { etag, text: part } of seen) expect(part === whole.slice(0, byEtag.get(etag) ?? 0)).toBe(true);
      expect(seen.length).toBeGreaterThan(0);
    });

    it('of which snapshots are taken meanwhile has in each what was appended before', async () => {
      const blob = await newAppendBlob(running);
      const lengths = new Map<string, number>();
      const appender = async (client: number) => {
        for (let at = 0; at < 20; at++) {
          const text = `<${client}:${at}>`.padEnd(lengthOfAppend(client, at), '.');
          const { etag, offset } = await blob.append(text);
          lengths.set(etag, offset + text.length);
        }
      };
      const taken: Answer[] = [];
      const taker = async () => {
        for (let at = 0; at < 12; at++) taken.push(await takeSnapshot(running, blob.path));
      };
      await Promise.all([appender(0), appender(1), appender(2), taker(), taker()]);
      const whole = (await running.request('GET', blob.path)).text;
      for (const { headers } of taken) {
        const found = await running.request('GET', `${blob.path}?snapshot=${headers['x-ms-snapshot']}`);
        expect(found.headers.etag).toBe(headers.etag);
        expect(found.text === whole.slice(0, lengths.get(headers.etag!) ?? 0)).toBe(true);
      }
      expect((await check(running.where)).findings).toEqual([]);
    });
  }, options);
});

/** More map pages than one lookup of a read has, so that a read of all holds a generation. */
const LENGTH = 18 * MIB;

describe('A page blob', { timeout: 120_000 }, () => {
  onEveryDisk((running) => {
    it('of which two clients write overlapping pages is for each reader the state of its ETag', async () => {
      const blob = await newPageBlob(running);
      let writing = 2;
      const writer = async (seed: number) => {
        await writePages(blob, randomOf(seed), 60);
        writing--;
      };
      const wholeReader = async () => {
        do await blob.read(0, LENGTH);
        while (writing > 0);
      };
      /** At the borders of map pages, where the writes are. */
      const borderReader = async (seed: number) => {
        const random = randomOf(seed);
        while (writing > 0) {
          const from = Math.max(0, random.below(18) * MIB - 20 * PAGE);
          await blob.read(from, from + 40 * PAGE);
        }
      };
      const lister = async () => {
        do await blob.list();
        while (writing > 0);
      };
      const borders = [3, 4, 5, 6].map(borderReader);
      await Promise.all([writer(1), writer(2), wholeReader(), ...borders, lister()]);
      await blob.read(0, LENGTH);
      await blob.list();
      blob.replay.verify();
    });

    it('of which snapshots are taken and deleted while others write is one state in each of them', async () => {
      const blob = await newPageBlob(running);
      const kept: Answer[] = [];
      const taker = async () => {
        for (let at = 0; at < 10; at++) {
          const taken = await takeSnapshot(running, blob.path);
          if (at % 3 !== 1) kept.push(taken);
          else await removeSnapshot(running, blob.path, taken);
        }
      };
      await Promise.all([writePages(blob, randomOf(7), 50), writePages(blob, randomOf(8), 50), taker(), taker()]);
      for (const { headers } of kept) {
        const query = `snapshot=${headers['x-ms-snapshot']}`;
        expect(await blob.read(0, LENGTH, query)).toBe(headers.etag);
        await blob.list(query);
      }
      await blob.read(0, LENGTH);
      blob.replay.verify();
      expect((await check(running.where)).findings).toEqual([]);
    });
  }, options);
});

describe('A long read of a blob that changes in place', { timeout: 120_000 }, () => {
  onEveryDisk((running) => {
    it('has all of one state, though that is written, cut, replaced or deleted meanwhile, and then gives the space back', async () => {
      const before = await check(running.where);
      const { containerName } = await running.newContainer();
      const readers = await Promise.all(
        Object.entries(endings).map(async ([name, end]) => {
          const path = `/${containerName}/${encodeURIComponent(name)}`;
          const expected = await fillPages(running, path);
          const taken = await takeSnapshot(running, path);
          const query = name.startsWith('snapshot') ? `?snapshot=${taken.headers['x-ms-snapshot']}` : '';
          return { name, path, expected, taken, end, reader: await beginRead(running, `${path}${query}`) };
        }),
      );
      for (const { path, taken, end } of readers) await end(running, path, taken);
      // Time for a sweeper that does not wait for the readers.
      for (let at = 0; at < 20; at++) {
        await createBlob(running, `/${containerName}/other`, LENGTH);
        await putPages(running, `/${containerName}/other`, 0, Buffer.alloc(MIB, 'o'));
      }
      for (const { name, expected, reader } of readers) {
        const found = await reader.finish();
        expect([name, found.length, found.equals(expected)]).toEqual([name, expected.length, true]);
      }
      expect((await check(running.where)).findings).toEqual([]);
      await running.request('DELETE', `/${containerName}?restype=container`);
      // A few rows of extents may be left, but no page, no chunk and no held generation.
      await expect
        .poll(async () => (await check(running.where)).rows, { timeout: 60_000, interval: 500 })
        .toBeLessThan(before.rows + 20);
    });
  }, options);
});

/** What happens to a blob, or to its snapshot, while it is read. */
const endings: Record<string, (running: Running, path: string, taken: Answer) => Promise<unknown>> = {
  async 'snapshot, deleted'(running, path, taken) {
    await overwriteSome(running, path);
    await removeSnapshot(running, path, taken);
  },
  async 'snapshot, deleted with its blob'(running, path) {
    await overwriteSome(running, path);
    await removeWithSnapshots(running, path);
  },
  'blob, deleted': (running, path) => removeWithSnapshots(running, path),
  'blob, replaced': (running, path) => createBlob(running, path, MIB),
  async 'blob, cut and written'(running, path, taken) {
    await removeSnapshot(running, path, taken);
    await resize(running, path, PAGE);
    await resize(running, path, LONG_BYTES);
    await overwriteSome(running, path);
  },
};

/** Of each map page, so that an earlier state has pages of its own. */
async function overwriteSome(running: Running, path: string): Promise<void> {
  for (let from = 0; from < LONG_BYTES; from += MIB) await putPages(running, path, from, Buffer.alloc(PAGE, 'x'));
}

/** More than the buffers of a connection hold. */
const LONG_BYTES = 28 * MIB;

async function fillPages(running: Running, path: string): Promise<Buffer> {
  const bytes = bytesOf(path, LONG_BYTES);
  await createBlob(running, path, LONG_BYTES);
  for (let from = 0; from < LONG_BYTES; from += 4 * MIB)
    await putPages(running, path, from, bytes.subarray(from, from + 4 * MIB));
  return bytes;
}

/** Reads the first bytes, and the others when it is told to. */
async function beginRead(running: Running, path: string) {
  const socket = running.socket();
  socket.write(running.head('GET', path, { Connection: 'close' }));
  const [first] = (await once(socket, 'data')) as [Buffer];
  socket.pause();
  return {
    async finish(): Promise<Buffer> {
      const chunks = [first];
      socket.on('data', (chunk) => chunks.push(chunk)).resume();
      await once(socket, 'close');
      const answer = Buffer.concat(chunks);
      return answer.subarray(answer.indexOf('\r\n\r\n') + 4);
    },
  };
}

async function newAppendBlob(running: Running) {
  const path = `/${(await running.newContainer()).containerName}/log`;
  const created = await running.request('PUT', path, { headers: { 'x-ms-blob-type': 'AppendBlob' } });
  expect(created.status).toBe(201);
  return {
    path,
    async append(text: string) {
      const { status, headers } = await running.request('PUT', `${path}?comp=appendblock`, { body: text });
      expect(status).toBe(201);
      const { 'x-ms-blob-append-offset': offset, 'x-ms-blob-committed-block-count': blocks } = headers;
      return { etag: headers.etag!, offset: Number(offset), blocks: Number(blocks) };
    },
  };
}

/** Short ones are stored in rows, the others in chunks; the longest come while the connection is open. */
function lengthOfAppend(client: number, at: number): number {
  const short = 40 + ((client * 131 + at * 17) % 900);
  return at % 10 === 9 ? 20_000 + short : at % 5 === 4 ? 5_000 + short : short;
}

async function newPageBlob(running: Running) {
  const path = `/${(await running.newContainer()).containerName}/disk`;
  const replay = new PageReplay(LENGTH);
  const { headers } = await createBlob(running, path, LENGTH);
  replay.cleared(headers.etag!, 0, LENGTH);
  const blob = {
    path,
    replay,
    async put(from: number, bytes: Buffer): Promise<void> {
      replay.wrote(await putPages(running, path, from, bytes), from, bytes);
    },
    async clear(from: number, to: number): Promise<void> {
      const headers = { 'x-ms-page-write': 'clear', 'x-ms-range': `bytes=${from}-${to - 1}` };
      const answer = await running.request('PUT', `${path}?comp=page`, { headers });
      expect(answer.status).toBe(201);
      replay.cleared(answer.headers.etag!, from, to);
    },
    /** @returns the ETag */
    async read(from: number, to: number, query = ''): Promise<string> {
      const range = `bytes=${from}-${to - 1}`;
      const answer = await running.request('GET', `${path}?${query}`, { headers: { 'x-ms-range': range } });
      expect([answer.status, answer.bytes.length]).toEqual([206, to - from]);
      replay.sawBytes(answer.headers.etag!, from, answer.bytes);
      return answer.headers.etag!;
    },
    async list(query = ''): Promise<void> {
      const { status, headers, text } = await running.request('GET', `${path}?comp=pagelist&${query}`);
      expect(status).toBe(200);
      const found = [...text.matchAll(/<Start>(\d+)<\/Start><End>(\d+)<\/End>/g)].map(([, start, end]) => [start, end]);
      replay.sawRanges(headers.etag!, found.map((range) => range.join('-')).join(' '));
    },
  };
  for (let from = 0; from < LENGTH; from += MIB) await blob.put(from, Buffer.alloc(PAGE, 'a'));
  return blob;
}

/** At the borders of map pages: short ones, chunks, and clears. */
async function writePages(
  blob: Awaited<ReturnType<typeof newPageBlob>>,
  random: ReturnType<typeof randomOf>,
  count: number,
): Promise<void> {
  for (let at = 0; at < count; at++) {
    const first = Math.max(0, random.below(18) * 2048 - 12 + random.below(12));
    const pages = random.chance(0.1) ? 300 : 1 + random.below(20);
    const from = first * PAGE;
    if (random.chance(0.2)) await blob.clear(from, from + pages * PAGE);
    else await blob.put(from, bytesOf(`${random.below(2 ** 30)}`, pages * PAGE));
  }
}

async function createBlob(running: Running, path: string, length: number): Promise<Answer> {
  const headers = { 'x-ms-blob-type': 'PageBlob', 'x-ms-blob-content-length': length };
  const answer = await running.request('PUT', path, { headers });
  expect(answer.status).toBe(201);
  return answer;
}

/** @returns the ETag */
async function putPages(running: Running, path: string, from: number, body: Buffer): Promise<string> {
  const headers = { 'x-ms-page-write': 'update', 'x-ms-range': `bytes=${from}-${from + body.length - 1}` };
  const answer = await running.request('PUT', `${path}?comp=page`, { headers, body });
  expect(answer.status).toBe(201);
  return answer.headers.etag!;
}

async function resize(running: Running, path: string, length: number): Promise<void> {
  const headers = { 'x-ms-blob-content-length': length };
  expect((await running.request('PUT', `${path}?comp=properties`, { headers })).status).toBe(200);
}

async function takeSnapshot(running: Running, path: string): Promise<Answer> {
  const taken = await running.request('PUT', `${path}?comp=snapshot`);
  expect(taken.status).toBe(201);
  return taken;
}

async function removeSnapshot(running: Running, path: string, { headers }: Answer): Promise<void> {
  const { status } = await running.request('DELETE', `${path}?snapshot=${headers['x-ms-snapshot']}`);
  expect(status).toBe(202);
}

async function removeWithSnapshots(running: Running, path: string): Promise<void> {
  const headers = { 'x-ms-delete-snapshots': 'include' };
  expect((await running.request('DELETE', path, { headers })).status).toBe(202);
}
