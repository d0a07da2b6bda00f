import { check } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { onEveryDisk } from '../support/test-server.ts';

describe('Renaming a container', () => {
  onEveryDisk((running) => {
    const rename = (from: string, to: string) =>
      running.request('PUT', `/${to}?restype=container&comp=rename`, {
        headers: { 'x-ms-source-container-name': from },
      });

    it('while blobs are put into it keeps every blob that was acknowledged', async () => {
      for (let round = 0; round < 10; round++) {
        const [from, to] = [`from-${round}`, `to-${round}`];
        await running.request('PUT', `/${from}?restype=container`);
        const put = async (at: number) => {
          const request = { headers: { 'x-ms-blob-type': 'BlockBlob' }, body: `${at}` };
          const { status, headers } = await running.request('PUT', `/${from}/blob-${at}`, request);
          if (status !== 201) expect([status, headers['x-ms-error-code']]).toEqual([404, 'ContainerNotFound']);
          return status === 201 ? [`blob-${at}`] : [];
        };
        const before = Array.from({ length: 12 }, (_, at) => put(at));
        const renamed = rename(from, to);
        const after = Array.from({ length: 12 }, (_, at) => put(12 + at));
        expect((await renamed).status).toBe(200);
        const acknowledged = (await Promise.all([...before, ...after])).flat();
        const list = await running.request('GET', `/${to}?restype=container&comp=list`);
        const found = [...list.text.matchAll(/<Name>(.*?)<\/Name>/g)].map(([, name]) => name);
        expect(found).toEqual(acknowledged.sort());
      }
      expect((await check(running.where)).findings).toEqual([]);
    });

    it('to many names, or of many containers to one name, succeeds once', async () => {
      const names = (prefix: string) => Array.from({ length: 8 }, (_, at) => `${prefix}-${at}`);
      for (let round = 0; round < 5; round++) {
        const [source, target] = [`source-${round}`, `target-${round}`];
        for (const name of [source, ...names(target)]) await running.request('PUT', `/${name}?restype=container`);
        const away = await Promise.all(names(source).map((name) => rename(source, name)));
        expect(away.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(404)]);
        const together = await Promise.all(names(target).map((name) => rename(name, target)));
        expect(together.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(409)]);
      }
    });
  });
});

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
