import { check } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { onEveryDisk } from '../support/test-server.ts';

describe('Deleting a container', () => {
  onEveryDisk((running) => {
    it('while blobs are put into it leaves no orphan', async () => {
      const name = 'contested';
      const create = () => running.request('PUT', `/${name}?restype=container`);
      const put = (at: number) =>
        running.request('PUT', `/${name}/blob-${at % 7}`, {
          headers: { 'x-ms-blob-type': 'BlockBlob' },
          body: `${at}`,
        });
      for (let round = 0; round < 25; round++) {
        expect((await create()).status).toBe(201);
        // A container that is empty when it is deleted is swept at once, so a late blob would stay for ever.
        const before = Array.from({ length: round % 2 === 0 ? 0 : 12 }, (_, at) => put(at));
        const removed = running.request('DELETE', `/${name}?restype=container`);
        const after = Array.from({ length: 12 }, (_, at) => put(at));
        expect((await removed).status).toBe(202);
        for (const { status, headers } of await Promise.all([...before, ...after])) {
          if (status !== 201) expect([status, headers['x-ms-error-code']]).toEqual([404, 'ContainerNotFound']);
        }
      }
      // The contents of the deleted ones are swept in slices, completely.
      await expect.poll(async () => (await check(running.where)).blobs, { timeout: 20_000 }).toBe(0);
      expect((await check(running.where)).findings).toEqual([]);
      await create();
      const list = await running.request('GET', `/${name}?restype=container&comp=list`);
      expect(list.text).toContain('<Blobs></Blobs>');
    });

    it('by many at once succeeds once, as does making it', async () => {
      for (let round = 0; round < 5; round++) {
        const ask = (method: string) =>
          Promise.all(Array.from({ length: 16 }, () => running.request(method, '/fought-over?restype=container')));
        expect((await ask('PUT')).filter(({ status }) => status === 201)).toHaveLength(1);
        expect((await ask('DELETE')).filter(({ status }) => status === 202)).toHaveLength(1);
      }
    });
  });
});
