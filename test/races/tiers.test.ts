import { describe, expect, it } from 'vitest';
import { onEveryDisk } from '../support/test-server.ts';

const TIERS = ['Hot', 'Cool', 'Cold'];
/** No rehydration ends by itself while a test runs. */
const slow = { start: { rehydrationSeconds: 5_000 } };

describe('A tier that is set beside other writes', () => {
  onEveryDisk((running) => {
    it('loses none of them, and none loses it: the last content, its ETag and a tier that somebody set', async () => {
      const { containerName } = await running.newContainer();
      const path = `/${containerName}/blob`;
      const put = (body: string) => running.request('PUT', path, { headers: { 'x-ms-blob-type': 'BlockBlob' }, body });
      const setTier = (tier: string) =>
        running.request('PUT', `${path}?comp=tier`, { headers: { 'x-ms-access-tier': tier } });
      expect((await put('first')).status).toBe(201);
      for (let round = 0; round < 5; round++) {
        const answers = await Promise.all(
          Array.from({ length: 48 }, (_, at) =>
            at % 2 === 0 ? put(`${round}-${at}`) : setTier(TIERS[(at + round) % TIERS.length]!),
          ),
        );
        const wrong = answers.filter(({ status }, at) => status !== (at % 2 === 0 ? 201 : 200));
        expect(wrong.map(({ text }) => text)).toEqual([]);
        const etags = answers.flatMap(({ headers }) => headers.etag ?? []);
        const last = [...etags].sort((one, other) => (one < other ? -1 : 1)).at(-1)!;
        const found = await running.request('GET', path);
        // The highest ETag is that of the last Put Blob: no tier has given the blob another one.
        expect(found.headers.etag).toBe(last);
        expect(found.text).toBe(`${round}-${answers.findIndex(({ headers }) => headers.etag === last)}`);
        const { headers } = await running.request('HEAD', path);
        expect(headers['x-ms-access-tier-inferred']).toBeUndefined();
        expect(TIERS).toContain(headers['x-ms-access-tier']);
      }
    });

    it('lets one of a write and an archiving be first: a write is never lost in the archive', async () => {
      for (let round = 0; round < 10; round++) {
        const { containerName } = await running.newContainer();
        const path = `/${containerName}/blob`;
        const headers = { 'x-ms-blob-type': 'BlockBlob' };
        await running.request('PUT', path, { headers, body: 'first' });
        const [written, archived] = await Promise.all([
          running.request('PUT', path, { headers, body: 'second' }),
          running.request('PUT', `${path}?comp=tier`, { headers: { 'x-ms-access-tier': 'Archive' } }),
        ]);
        expect(archived.status).toBe(200);
        const now = await running.request('HEAD', path);
        expect(now.headers['x-ms-access-tier']).toBe('Archive');
        if (written.status === 201) expect(now.headers.etag).toBe(written.headers.etag);
        else expect(written.headers['x-ms-error-code']).toBe('BlobArchived');
      }
    });

    it('starts one rehydration, however many ask for different ones', async () => {
      const { containerName } = await running.newContainer();
      const path = `/${containerName}/blob`;
      const headers = { 'x-ms-blob-type': 'BlockBlob', 'x-ms-access-tier': 'Archive' };
      await running.request('PUT', path, { headers, body: 'x' });
      const answers = await Promise.all(
        Array.from({ length: 30 }, (_, at) =>
          running.request('PUT', `${path}?comp=tier`, { headers: { 'x-ms-access-tier': TIERS[at % 3] } }),
        ),
      );
      const accepted = new Set(answers.flatMap(({ status }, at) => (status === 202 ? [TIERS[at % 3]!] : [])));
      expect(accepted.size).toBe(1);
      expect(answers.filter(({ status }) => status === 202)).toHaveLength(10);
      const [to] = accepted;
      const found = await running.request('HEAD', path);
      expect(found.headers['x-ms-archive-status']).toBe(`rehydrate-pending-to-${to!.toLowerCase()}`);
    });
  }, slow);
});
