import { check } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { deleteBlob } from '../../src/services/blob/blobs.ts';
import { type ListedBlob, listBlobs } from '../../src/services/blob/listing.ts';
import { putBlob } from '../../src/services/blob/put-blob.ts';
import { snapshotBlob } from '../../src/services/blob/snapshots.ts';
import { undeleteBlob } from '../../src/services/blob/undelete.ts';
import { setServiceProperties } from '../../src/services/common/service-properties.ts';
import { openCluster, type Process } from '../support/content-cluster.ts';
import { onEveryDisk } from '../support/test-server.ts';

const BLOCK_BLOB = { 'x-ms-blob-type': 'BlockBlob' };
const DAY = 86_400;
const ROUNDS = 10;

describe('Undelete Blob beside other writes', () => {
  onEveryDisk((running) => {
    const newBlob = async () => {
      await running.service.setProperties({ deleteRetentionPolicy: { enabled: true, days: 1 } });
      const { containerName } = await running.newContainer();
      const path = `/${containerName}/blob`;
      const put = (body: string) => running.request('PUT', path, { headers: BLOCK_BLOB, body });
      const undelete = () => running.request('PUT', `${path}?comp=undelete`);
      /** All states, from the oldest to the newest. */
      const states = async () => {
        const query = '?restype=container&comp=list&include=snapshots,deleted';
        const { text } = await running.request('GET', `/${containerName}${query}`);
        return [...text.matchAll(/<Blob>(.*?)<\/Blob>/gs)].map(([, blob]) => ({
          etag: /<Etag>(.*?)</.exec(blob!)![1]!,
          isSnapshot: blob!.includes('<Snapshot>'),
          isDeleted: blob!.includes('<Deleted>'),
        }));
      };
      const first = await put('first');
      return { path, put, undelete, states, first: first.headers.etag!.replaceAll('"', '') };
    };

    it('and Put Blob: no state is lost, and the blob is the one that was put', async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const { path, put, undelete, states, first } = await newBlob();
        await running.request('DELETE', path);
        const [undone, written] = await Promise.all([undelete(), put('second')]);
        expect([undone.status, written.status]).toEqual([200, 201]);
        expect((await running.request('GET', path)).text).toBe('second');
        const [old, now, ...others] = await states();
        expect(others).toEqual([]);
        expect([old!.etag, old!.isSnapshot]).toEqual([first, true]);
        expect([now!.etag, now!.isSnapshot, now!.isDeleted]).toEqual([
          written.headers.etag!.replaceAll('"', ''),
          false,
          false,
        ]);
      }
      expect((await check(running.where)).findings).toEqual([]);
    });

    it('and deletes: the blob is there or deleted, never both and never neither', async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const { path, undelete, states, first } = await newBlob();
        await running.request('PUT', `${path}?comp=snapshot`);
        const remove = () => running.request('DELETE', path, { headers: { 'x-ms-delete-snapshots': 'include' } });
        await remove();
        await Promise.all([undelete(), remove(), undelete(), remove(), undelete()]);
        const found = await states();
        expect(found.map(({ etag, isSnapshot }) => [etag, isSnapshot])).toEqual([
          [first, true],
          [first, false],
        ]);
        expect(found[0]!.isDeleted).toBe(found[1]!.isDeleted);
      }
      expect((await check(running.where)).findings).toEqual([]);
    });

    it('and the end of the retention: it is restored whole, or gone', async () => {
      for (let round = 0; round < 5; round++) {
        const { path, undelete, states } = await newBlob();
        await running.request('PUT', `${path}?comp=snapshot`);
        await running.request('DELETE', path, { headers: { 'x-ms-delete-snapshots': 'include' } });
        await running.server.clock.advance(DAY - 1);
        const [undone] = await Promise.all([undelete(), running.server.clock.advance(1)]);
        const found = await states();
        if (undone.status === 200) expect(found.map(({ isDeleted }) => isDeleted)).toEqual([false, false]);
        else expect([undone.headers['x-ms-error-code'], found]).toEqual(['BlobNotFound', []]);
      }
      expect((await check(running.where)).findings).toEqual([]);
    });
  });
});

describe('Soft delete in three processes', () => {
  const base = { container: 'box', blob: 'blob', conditions: {}, leaseId: undefined };
  const put = ({ storage }: Process, length: number) => {
    const body = {
      ...{ length, expected: {} },
      async *bytes() {
        yield Buffer.alloc(length, 'x');
      },
    };
    return putBlob(storage, { ...base, content: {}, metadata: [], body });
  };
  const listed = async ({ storage }: Process) => {
    const found: ListedBlob[] = [];
    const page = { prefix: '', marker: '', resultsMax: undefined, delimiter: '', uncommitted: false };
    await listBlobs(storage, { container: 'box', ...page, snapshots: true, deleted: true }, (items) => {
      for (const item of items) if ('name' in item) found.push(item);
    });
    return found;
  };

  it('keeps every state of many overwrites, deletes and undeletes, once', async () => {
    const cluster = await openCluster();
    for (let i = 0; i < 3; i++) await cluster.start();
    const [one, two, three] = cluster.processes as [Process, Process, Process];
    await one.newContainer('box');
    await setServiceProperties(one.storage, 'blob', { deleteRetention: { days: 7, allowsPermanentDelete: false } });
    await cluster.beat();
    let states = 0;
    const count = (done: Promise<unknown>) => done.then(() => states++).catch(() => {});
    for (let round = 0; round < 15; round++) {
      await count(put(one, 30_000 + round));
      await Promise.all([
        count(put(two, 40_000 + round)),
        count(snapshotBlob(three.storage, { ...base, metadata: [] })),
        deleteBlob(one.storage, { ...base, snapshots: 'include' }).catch(() => {}),
        undeleteBlob(two.storage, base).catch(() => {}),
        count(put(three, 50_000 + round)),
        deleteBlob(two.storage, { ...base, snapshots: 'only' }).catch(() => {}),
      ]);
      const found = await listed(three);
      expect(found.length).toBe(states);
      expect(found.filter(({ snapshot }) => snapshot === undefined)).toHaveLength(1);
    }
    await cluster.settle();
    expect(await cluster.findings()).toEqual([]);
    expect(await listed(one)).toHaveLength(states);
    await undeleteBlob(one.storage, base);
    expect((await listed(two)).filter(({ deletion }) => deletion)).toEqual([]);
    expect(await listed(two)).toHaveLength(states);
    await cluster.close();
  });
});
