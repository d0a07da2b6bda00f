import { check } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { deleteBlob, getBlob } from '../../src/services/blob/blobs.ts';
import { listBlobs } from '../../src/services/blob/listing.ts';
import { putBlob } from '../../src/services/blob/put-blob.ts';
import { snapshotBlob } from '../../src/services/blob/snapshots.ts';
import { openCluster, type Process } from '../support/content-cluster.ts';
import { onEveryDisk } from '../support/test-server.ts';

const BLOCK_BLOB = { 'x-ms-blob-type': 'BlockBlob' };

describe('A snapshot that is taken beside other writes', () => {
  onEveryDisk((running) => {
    const newBlob = async () => {
      const { containerName } = await running.newContainer();
      const path = `/${containerName}/blob`;
      const put = (body: string) => running.request('PUT', path, { headers: BLOCK_BLOB, body });
      const take = () => running.request('PUT', `${path}?comp=snapshot`);
      const remove = (snapshots?: string) =>
        running.request('DELETE', path, { headers: snapshots ? { 'x-ms-delete-snapshots': snapshots } : {} });
      const snapshots = async () => {
        const list = `/${containerName}?restype=container&comp=list&include=snapshots`;
        return [...(await running.request('GET', list)).text.matchAll(/<Snapshot>(.*?)</g)].map(
          ([, moment]) => moment!,
        );
      };
      await put('first');
      return { path, put, take, remove, snapshots };
    };

    it('is one state of the blob, that of its ETag, and none is lost', async () => {
      const { path, put, take, snapshots } = await newBlob();
      const bodies = new Map<string, string>();
      const [written, taken] = await Promise.all([
        Promise.all(
          Array.from({ length: 40 }, async (_, at) => {
            const body = at % 2 === 0 ? `${at}` : `${at};`.repeat(20_000);
            bodies.set((await put(body)).headers.etag!, body);
          }),
        ),
        Promise.all(Array.from({ length: 40 }, take)),
      ]);
      expect([written.length, new Set(taken.map(({ headers }) => headers['x-ms-snapshot'])).size]).toEqual([40, 40]);
      for (const { headers } of taken) {
        const found = await running.request('GET', `${path}?snapshot=${headers['x-ms-snapshot']}`);
        expect(found.headers.etag).toBe(headers.etag);
        expect(found.text).toBe(bodies.get(headers.etag!) ?? 'first');
      }
      expect(await snapshots()).toEqual(taken.map(({ headers }) => headers['x-ms-snapshot']!).sort());
      expect((await check(running.where)).findings).toEqual([]);
    });

    it('and a delete of the blob alone: one of them is first, and the other is refused', async () => {
      const outcomes = new Set<string>();
      for (let round = 0; round < 20; round++) {
        const { take, remove, snapshots } = await newBlob();
        const [taken, removed] = await Promise.all(round % 2 === 0 ? [take(), remove()] : [remove(), take()].reverse());
        const codes = [taken!, removed!].map(({ status, headers }) => headers['x-ms-error-code'] ?? status);
        expect([
          [201, 'SnapshotsPresent'],
          ['BlobNotFound', 202],
        ]).toContainEqual(codes);
        expect(await snapshots()).toHaveLength(codes[0] === 201 ? 1 : 0);
        outcomes.add(String(codes[0]));
      }
      expect(outcomes.size).toBeGreaterThan(0);
    });

    it.each(['include', 'only'])(
      'and a delete with "%s": no snapshot outlives it, and none is lost later',
      async (mode) => {
        for (let round = 0; round < 10; round++) {
          const { put, take, remove, snapshots } = await newBlob();
          await take();
          const [before, removed, after] = await Promise.all([take(), remove(mode), take()]);
          expect(removed.status).toBe(202);
          const alive = await snapshots();
          for (const { status, headers } of [before, after]) {
            if (status === 404) expect(mode).toBe('include');
            else expect([201, headers['x-ms-error-code']]).toEqual([201, undefined]);
          }
          if (mode === 'include') expect(alive).toEqual([]);
          await put('second');
          const again = await remove();
          if (alive.length > 0) expect(again.headers['x-ms-error-code']).toBe('SnapshotsPresent');
          else expect(again.status).toBe(202);
        }
        expect((await check(running.where)).findings).toEqual([]);
      },
    );
  });
});

describe('Snapshots of three processes', () => {
  const base = { container: 'box', blob: 'blob', conditions: {}, leaseId: undefined };
  const codeOf = (done: Promise<unknown>) =>
    done.then(
      () => 'done',
      (error: { code: string }) => error.code,
    );
  const put = ({ storage }: Process, length: number) => {
    const bytes = Buffer.alloc(length, 'x');
    const body = {
      ...{ length, expected: {} },
      async *bytes() {
        yield bytes;
      },
    };
    return putBlob(storage, { ...base, content: {}, metadata: [], body });
  };
  const listed = async ({ storage }: Process) => {
    const found: bigint[] = [];
    const page = { ...{ prefix: '', marker: '', resultsMax: undefined, delimiter: '' }, uncommitted: false };
    await listBlobs(storage, { container: 'box', ...page, snapshots: true }, (items) => {
      for (const item of items) if ('name' in item && item.snapshot !== undefined) found.push(item.snapshot);
    });
    return found;
  };

  it.each([undefined, 'include' as const, 'only' as const])(
    'are never lost, and never present without one: delete %s',
    async (snapshots) => {
      const cluster = await openCluster();
      for (let i = 0; i < 3; i++) await cluster.start();
      const [one, two, three] = cluster.processes as [Process, Process, Process];
      await one.newContainer('box');
      await cluster.beat();
      for (let round = 0; round < 15; round++) {
        await put(one, 50_000 + round);
        const takes = [one, three].map(({ storage }) => snapshotBlob(storage, { ...base, metadata: [] }));
        const [deleted, ...taken] = await Promise.all([
          codeOf(deleteBlob(two.storage, { ...base, snapshots })),
          ...takes.map(codeOf),
          codeOf(put(three, 60_000)),
        ]);
        const alive = await listed(two);
        if (deleted === 'SnapshotsPresent')
          expect(alive.length).toBe(taken.slice(0, 2).filter((code) => code === 'done').length);
        if (snapshots === undefined && deleted === 'done') expect(alive.length).toBeLessThanOrEqual(2);
        for (const snapshot of alive) {
          const asked = { range: undefined, rangeMd5: undefined, rangeCrc64: undefined };
          const { bytes } = await getBlob(three.storage, { ...base, snapshot, ...asked });
          let length = 0;
          for await (const piece of bytes as AsyncIterable<Buffer>) length += piece.length;
          expect([50_000 + round, 60_000]).toContain(length);
        }
        await deleteBlob(one.storage, { ...base, snapshots: 'include' }).catch(() => {});
      }
      await cluster.settle();
      expect(await cluster.trash()).toEqual([]);
      expect(await cluster.findings()).toEqual([]);
      await cluster.close();
    },
  );
});
