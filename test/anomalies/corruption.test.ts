import { readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { check } from '../../src/index.ts';
import { type Client, newFolder, type Server, serve } from '../support/disposable-servers.ts';
import { randomOf } from '../support/random.mjs';
import { bytesOf } from '../support/seeded-bytes.mjs';
import { type Corruption, openExtentCorruptor } from './corrupt-extents.ts';

/** Corruptions of bytes and checksums of blobs: one in a header or between two chunks does not count. */
const DAMAGES = 1_000;
const FEWEST = 50;
const STARTS = 3;

type Contents = Map<string, readonly Buffer[]>;

describe('Corruption of extents', () => {
  it('is found by every read that meets it, and no wrong byte is served', { timeout: 180_000 }, async () => {
    const location = newFolder();
    const contents: Contents = new Map();
    let server = await serve(location);
    for (let start = 0; start < STARTS; start++) {
      if (start > 0) server = await restarted(server, location);
      await write(server.client, start, contents);
    }
    const seed = Date.now() % 2 ** 31;
    const random = randomOf(seed);
    const corruptor = openExtentCorruptor(location, contents);
    expect(corruptor.files).toBe(STARTS);

    const counts = { flip: 0, cut: 0, swap: 0 };
    const count = () => counts.flip + counts.cut + counts.swap;
    const fewest = () => Math.min(...Object.values(counts));
    // How many there are of each kind is chance: as many as it takes.
    while (count() < DAMAGES || fewest() <= FEWEST) {
      const done = corruptor.corrupt(random);
      const logged = server.stdout().length;
      const corrupted = await readAll(server.client, contents, random);
      expect(corrupted, `seed ${seed}`).toEqual(sorted(done.flatMap((one) => [...one.corrupted])));
      await expectAlarms(server, logged, done);
      expect(await namedByCheck(location), `seed ${seed}`).toEqual(corrupted);
      corruptor.restore();
      for (const { kind, corrupted } of done) if (corrupted.size > 0) counts[kind]++;
    }
    console.log(`seed ${seed}: all found of`, counts);
    expect(fewest()).toBeGreaterThan(FEWEST);
    expect(await readAll(server.client, contents, random)).toEqual([]);
    expect(await check(location)).toMatchObject({ findings: [] });
  });

  it('is found where the files of two extents are swapped', async () => {
    const location = newFolder();
    const contents: Contents = new Map();
    let server = await serve(location);
    await write(server.client, 0, contents);
    server = await restarted(server, location);
    await write(server.client, 1, contents);
    await server.kill('SIGTERM');
    const [one, other] = readdirSync(join(location, 'extents')).map((name) => join(location, 'extents', name));
    renameSync(one!, `${other}-aside`);
    renameSync(other!, one!);
    renameSync(`${other}-aside`, other!);

    const { client } = await serve(location);
    expect(await readAll(client, contents, randomOf(1))).toEqual(sorted([...contents.keys()]));
    expect(await namedByCheck(location)).toEqual(sorted([...contents.keys()]));
  });
});

async function restarted(server: Server, location: string): Promise<Server> {
  await server.kill('SIGTERM');
  return serve(location);
}

/** One extent for each start of a server, since each start begins another. */
async function write(client: Client, start: number, contents: Contents): Promise<void> {
  await client.createContainer('one');
  const put = async (name: string, lengths: readonly number[]) => {
    const path = `one/${start}-${name}`;
    const stretches = lengths.map((length, at) => bytesOf(`${path}-${at}`, length));
    contents.set(path, stretches);
    if (stretches.length === 1) {
      expect((await client.putBlob(path, stretches[0]!)).status).toBe(201);
      return;
    }
    const ids = stretches.map((_, at) => Buffer.from(`block ${at}`).toString('base64'));
    for (const [at, bytes] of stretches.entries())
      expect((await client.putBlock(path, ids[at]!, bytes)).status).toBe(201);
    const list = ids.map((id) => `<Latest>${id}</Latest>`).join('');
    expect((await client.putBlockList(path, list)).status).toBe(201);
  };
  for (let at = 0; at < 6; at++) await put(`small-${at}`, [20_000 + 997 * at]);
  for (let at = 0; at < 4; at++) await put(`alike-${at}`, [150_000]);
  await put('blocks', [30_000, 100_000, 5_000]);
  // More than is read before the head of the answer goes out.
  await put('large', [1_700_000]);
}

/** Paths of the blobs of which a read failed. */
async function readAll(client: Client, contents: Contents, random: ReturnType<typeof randomOf>): Promise<string[]> {
  const failed = new Set<string>();
  const read = async (path: string, wanted: Buffer, status: number, headers?: Record<string, string>) => {
    const answer = await client.getBlob(path, headers).catch(() => undefined);
    if (!answer) return false;
    if (answer.status === 409) {
      expect(answer.headers['x-ms-error-code']).toBe('DataCorrupted');
      return false;
    }
    expect(answer.status).toBe(status);
    if (!answer.body.equals(wanted)) expect.unreachable(`${path}: wrong bytes`);
    return true;
  };
  const readBoth = async ([path, stretches]: [string, readonly Buffer[]]) => {
    const content = Buffer.concat(stretches);
    if (!(await read(path, content, 200))) failed.add(path);
    const from = random.below(content.length);
    const to = from + 1 + random.below(content.length - from);
    const range = { range: `bytes=${from}-${to - 1}` };
    const isRead = await read(path, content.subarray(from, to), 206, range);
    // A part that is not damaged can be read.
    if (!isRead && !failed.has(path)) expect.unreachable(`${path}: a range cannot be read, all of it can`);
  };
  const left = [...contents];
  const reader = async () => {
    for (let next = left.pop(); next; next = left.pop()) await readBoth(next);
  };
  await Promise.all(Array.from({ length: 4 }, reader));
  return sorted([...failed]);
}

/** Every corrupt blob has a line of level error. */
async function expectAlarms(server: Server, from: number, corruptions: readonly Corruption[]): Promise<void> {
  const corrupted = new Set(corruptions.flatMap((each) => [...each.corrupted]));
  const lostHeaders = corruptions.flatMap((each) => [...each.lostHeaders].filter((path) => !each.corrupted.has(path)));
  const alarms = () => {
    const lines = server.stdout().slice(from);
    return {
      blobs: [...corrupted].filter((path) => !new RegExp(`ERROR .*damaged.*/${path}(?:\\s|$)`, 'm').test(lines)),
      headers: Math.min([...lines.matchAll(/its header is not what was written/g)].length, lostHeaders.length),
    };
  };
  await expect.poll(alarms, { timeout: 10_000 }).toEqual({ blobs: [], headers: lostHeaders.length });
}

async function namedByCheck(location: string): Promise<string[]> {
  const { findings } = await check(location);
  return sorted(
    findings.flatMap((line) => /^blob devstoreaccount1\/(\S+): some of its bytes are damaged$/.exec(line)?.[1] ?? []),
  );
}

function sorted(paths: readonly string[]): string[] {
  return [...new Set(paths)].sort();
}
