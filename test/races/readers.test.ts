import { describe, expect, it } from 'vitest';
import { fill, listXml, onEveryDisk } from '../support/test-server.ts';

describe('A reader', () => {
  onEveryDisk((running) => {
    it('sees bytes, headers and ETag of one write, never older than one that was acknowledged', async () => {
      const { containerName } = await running.newContainer();
      const path = `/${containerName}/blob`;
      const full = await running.newContainer();
      await fill(running, full, 600, (at) => `blob-${at}`);
      /** By number: the answers to the writer. */
      const etags = new Map<number, string>();
      let acknowledged = -1;
      let begun = 0;
      const writesMax = 150;
      const writer = async () => {
        while (begun < writesMax) {
          const number = begun++;
          const body = `${number};`.repeat(500);
          const headers = { 'x-ms-blob-type': 'BlockBlob', 'x-ms-meta-number': number };
          const answer = await running.request('PUT', path, { headers, body });
          expect(answer.status).toBe(201);
          etags.set(number, answer.headers.etag!);
          acknowledged = Math.max(acknowledged, number);
        }
      };
      const reader = async (method: string) => {
        let reads = 0;
        let newest = '';
        while (begun < writesMax || reads === 0) {
          const floor = etags.get(acknowledged) ?? '';
          const { status, text, headers } = await running.request(method, path);
          if (status === 404 && floor === '') continue;
          expect(status).toBe(200);
          const number = Number(headers['x-ms-meta-number']);
          const etag = headers.etag!;
          if (method === 'GET') expect(text).toBe(`${number};`.repeat(500));
          if (etags.has(number)) expect(etag).toBe(etags.get(number));
          // ETags rise with every write and have one length, so that they compare as text.
          expect(etag >= floor).toBe(true);
          expect(etag >= newest).toBe(true);
          newest = etag;
          reads++;
        }
        return reads;
      };
      // A list of many blobs holds an old state open for a while, which no other reader may be given.
      const lister = async () => {
        while (begun < writesMax) await listXml(running, full.containerName);
      };
      const [reads] = await Promise.all([reader('GET'), reader('GET'), reader('HEAD'), writer(), writer(), lister()]);
      expect(etags.size).toBe(writesMax);
      expect(new Set(etags.values()).size).toBe(writesMax);
      expect(reads).toBeGreaterThan(0);
    });

    it('finds in a list what was acknowledged, and nothing that was deleted before', async () => {
      const { containerName } = await running.newContainer();
      const worker = async (id: number) => {
        const path = `/${containerName}/${id}`;
        for (let at = 0; at < 12; at++) {
          await running.request('PUT', path, { headers: { 'x-ms-blob-type': 'BlockBlob' }, body: '' });
          expect(await names()).toContain(String(id));
          await running.request('DELETE', path);
          expect(await names()).not.toContain(String(id));
        }
      };
      const names = async () => {
        const { text } = await running.request('GET', `/${containerName}?restype=container&comp=list`);
        return [...text.matchAll(/<Name>(\d+)<\/Name>/g)].map(([, name]) => name);
      };
      await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(worker));
    });
  });
});
