/**
 * Processes that are killed while clients append to one blob, write pages of another, read both and take snapshots of them: what was
 * acknowledged is there, nothing is torn, and the space is given back in the end.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AppendBlobClient, BlobClient, PageBlobClient } from '@azure/storage-blob';
import { check, type Where } from 'holdfast';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { missing } from '../support/postgres-cluster.ts';
import { restartableServer, type Server, startServers, stopServers } from '../support/restartable-servers.ts';
import { clientOf } from '../support/test-server.ts';

const APPENDERS = 8;
const PAGE_WRITERS = 4;
const KILLS = 3;
const ACKNOWLEDGED_MIN = 60;
const PAGE = 512;
const PAGES = 4_000;
const ROWS_LEFT_MAX = 20;

describe('Blobs that change in place, in a process that is killed', { timeout: 240_000 }, () => {
  it('have all that was acknowledged, on LMDB', async () => {
    const location = mkdtempSync(join(tmpdir(), 'holdfast-in-place-'));
    onTestFinished(() => rmSync(location, { recursive: true, force: true }));
    await expectKept([restartableServer(['--location', location, '--log-level', 'warn'])], location);
  });

  const isWanted = process.env.HOLDFAST_TEST_ON_POSTGRES !== 'nothing';
  it.skipIf(missing || !isWanted)('have all that was acknowledged, by three on PostgreSQL', async () => {
    const partition = await (await fetch(inject('postgresForAll'))).text();
    const extents = mkdtempSync(join(tmpdir(), 'holdfast-extents-'));
    onTestFinished(() => rmSync(extents, { recursive: true, force: true }));
    const flags = ['--partition', partition, '--extents', extents, '--log-level', 'warn'];
    const servers = [restartableServer(flags), restartableServer(flags), restartableServer(flags)];
    await expectKept(servers, { partition, extents });
  });
});

interface Written {
  /** By offset: what an acknowledged append wrote there. */
  readonly appends: Map<number, string>;
  /** By page: the numbers of the writes of it, of which the last acknowledged one or a later one is there. */
  readonly pages: Map<number, { sent: Set<number>; acknowledged: number }>;
  count: number;
}

async function expectKept(servers: readonly Server[], where: Where): Promise<void> {
  onTestFinished(() => Promise.all(servers.map((server) => server.kill())).then(() => {}));
  await startServers(servers);
  const containerAt = (at: number) =>
    clientOf(`${servers[at % servers.length]!.origin()!}/devstoreaccount1`).getContainerClient('in-place');
  await containerAt(0).create();
  await containerAt(0).getAppendBlobClient('log').create();
  await containerAt(0)
    .getPageBlobClient('disk')
    .create(PAGES * PAGE);
  const written: Written = { appends: new Map(), pages: new Map(), count: 0 };
  let serial = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const enough = written.count + ACKNOWLEDGED_MIN;
    let isOver = false;
    const isDone = () => isOver;
    const appenders = Array.from({ length: APPENDERS }, (_, at) =>
      keepAppending(containerAt(at).getAppendBlobClient('log'), written, () => ++serial, isDone),
    );
    const writers = Array.from({ length: PAGE_WRITERS }, (_, at) =>
      keepWriting(containerAt(at).getPageBlobClient('disk'), at, written, () => ++serial, isDone),
    );
    const observers = ['log', 'disk'].flatMap((name, at) => [
      keepTakingSnapshots(containerAt(at).getBlobClient(name), isDone),
      keepReading(containerAt(at + 1).getBlobClient(name), isDone),
    ]);
    await expect.poll(() => written.count, { timeout: 60_000 }).toBeGreaterThan(enough);
    const killed = servers[kill % servers.length]!;
    await killed.kill();
    await killed.start();
    isOver = true;
    await Promise.all([...appenders, ...writers, ...observers]);
    await verify(
      containerAt(kill + 1).getAppendBlobClient('log'),
      containerAt(kill).getPageBlobClient('disk'),
      written,
    );
  }
  expect((await check(where)).findings).toEqual([]);
  await containerAt(0).delete();
  // The accounts, epochs and extents have rows, but no page, no chunk and no held generation has.
  await expect
    .poll(async () => (await check(where)).rows, { timeout: 90_000, interval: 500 })
    .toBeLessThan(ROWS_LEFT_MAX);
  await stopServers(servers);
  expect(servers.flatMap((server) => server.printed().match(/^\S+ (?:ERROR|FATAL) .*$/gm) ?? [])).toEqual([]);
  expect((await check(where)).findings).toEqual([]);
}

async function keepAppending(blob: AppendBlobClient, written: Written, next: () => number, isDone: () => boolean) {
  while (!isDone()) {
    const number = next();
    const text = `<${number}>`.padEnd(number % 5 === 0 ? 6_000 : 50 + (number % 900), '.');
    const offset = await blob.appendBlock(text, text.length, { abortSignal: AbortSignal.timeout(5_000) }).then(
      (answer) => Number(answer.blobAppendOffset),
      () => undefined,
    );
    if (offset === undefined) continue;
    expect(written.appends.has(offset)).toBe(false);
    written.appends.set(offset, text);
    written.count++;
  }
}

/** Every other one is deleted again. */
async function keepTakingSnapshots(blob: BlobClient, isDone: () => boolean): Promise<void> {
  for (let at = 0; !isDone(); at++) {
    const abortSignal = AbortSignal.timeout(5_000);
    const taken = await blob.createSnapshot({ abortSignal }).catch(() => undefined);
    if (taken && at % 2 === 0)
      await blob
        .withSnapshot(taken.snapshot!)
        .delete({ abortSignal })
        .catch(() => undefined);
  }
}

async function keepReading(blob: BlobClient, isDone: () => boolean): Promise<void> {
  while (!isDone())
    await blob.downloadToBuffer(0, undefined, { abortSignal: AbortSignal.timeout(5_000) }).catch(() => undefined);
}

/** Each page has one writer, so that the order of its writes is known. */
async function keepWriting(
  blob: PageBlobClient,
  writer: number,
  written: Written,
  next: () => number,
  isDone: () => boolean,
) {
  while (!isDone()) {
    const number = next();
    const page = ((number * 37) % (PAGES / PAGE_WRITERS)) * PAGE_WRITERS + writer;
    const known = written.pages.get(page) ?? { sent: new Set<number>(), acknowledged: 0 };
    written.pages.set(page, known);
    known.sent.add(number);
    const isAcknowledged = await blob
      .uploadPages(pageOf(number), page * PAGE, PAGE, { abortSignal: AbortSignal.timeout(5_000) })
      .then(
        () => true,
        () => false,
      );
    if (!isAcknowledged) continue;
    known.acknowledged = number;
    written.count++;
  }
}

const pageOf = (number: number) => Buffer.from(`<${number}>`.padEnd(PAGE, '.'));
const numberIn = (bytes: Buffer) => Number(/^<(\d+)>/.exec(bytes.toString('latin1'))?.[1] ?? 0);

async function verify(log: AppendBlobClient, disk: PageBlobClient, { appends, pages }: Written): Promise<void> {
  const text = (await log.downloadToBuffer()).toString('latin1');
  for (const [offset, appended] of appends) expect(text.startsWith(appended, offset)).toBe(true);
  const all = await disk.downloadToBuffer();
  for (const [page, { sent, acknowledged }] of pages) {
    const bytes = all.subarray(page * PAGE, (page + 1) * PAGE);
    const found = numberIn(bytes);
    expect(found === 0 ? bytes.equals(Buffer.alloc(PAGE)) : bytes.equals(pageOf(found))).toBe(true);
    expect(found === 0 || sent.has(found)).toBe(true);
    expect(found).toBeGreaterThanOrEqual(acknowledged);
  }
}
