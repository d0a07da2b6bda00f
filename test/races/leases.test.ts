import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { onEveryDisk } from '../support/test-server.ts';

describe('A lease that many want', () => {
  onEveryDisk((running) => {
    it('goes to exactly one of 64, whether of a blob or of a container', async () => {
      const container = await running.newContainer();
      await container.uploadBlockBlob('blob', 'x', 1);
      const headers = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': 15 };
      for (const path of ['/blob?comp=lease', '?restype=container&comp=lease']) {
        for (let round = 0; round < 3; round++) {
          const answers = await Promise.all(
            Array.from({ length: 64 }, () => running.request('PUT', `/${container.containerName}${path}`, { headers })),
          );
          expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
          for (const answer of answers) {
            if (answer.status !== 201) expect(answer.headers['x-ms-error-code']).toBe('LeaseAlreadyPresent');
          }
          await running.server.clock.advance(15);
        }
      }
    });

    it('is a mutex: its holder reads and writes without a condition, and no update is lost', async () => {
      const clients = 6;
      const countsEach = 3;
      const plain = await running.newContainer();
      const { containerName } = plain;
      await plain.uploadBlockBlob('lock', '', 0);
      await plain.uploadBlockBlob('counter', '0', 1);
      let inside = 0;
      const count = async () => {
        const mine = running.service.getContainerClient(containerName);
        const lease = mine.getBlobClient('lock').getBlobLeaseClient();
        const counter = mine.getBlockBlobClient('counter');
        for (let done = 0; done < countsEach; ) {
          try {
            await lease.acquireLease(-1);
          } catch (error) {
            if ((error as { statusCode?: number }).statusCode !== 409) throw error;
            continue;
          }
          expect(++inside).toBe(1);
          const next = String(Number(await counter.downloadToBuffer()) + 1);
          await counter.upload(next, next.length);
          inside--;
          done++;
          await lease.releaseLease();
        }
      };
      await Promise.all(Array.from({ length: clients }, count));
      expect(Number(await plain.getBlobClient('counter').downloadToBuffer())).toBe(clients * countsEach);
    });

    it('refuses writes with an id that was replaced or has expired', async () => {
      const { containerName } = await running.newContainer();
      const path = `/${containerName}/blob`;
      const put = (id: string | undefined, body: string) => {
        const headers = { 'x-ms-blob-type': 'BlockBlob', 'x-ms-lease-id': id };
        return running.request('PUT', path, { headers, body });
      };
      await put(undefined, 'first');
      for (let round = 0; round < 8; round++) {
        const id = randomUUID();
        const acquire = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': 15, 'x-ms-proposed-lease-id': id };
        expect((await running.request('PUT', `${path}?comp=lease`, { headers: acquire })).status).toBe(201);
        // The holder writes while the lease expires and other clients try: whichever succeeds, there is one order.
        const writes = Array.from({ length: 16 }, (_, at) => put(at % 2 === 0 ? id : undefined, `${round}-${at}`));
        await running.server.clock.advance(15);
        const answers = await Promise.all(writes);
        const tags = (holder: boolean) =>
          answers.flatMap(({ headers }, at) => ((at % 2 === 0) === holder && headers.etag ? [headers.etag] : []));
        // Once another client could write, the lease is gone.
        for (const mine of tags(true)) for (const theirs of tags(false)) expect(mine < theirs).toBe(true);
        const late = await put(id, 'too late');
        expect(late.status).toBe(412);
        expect(['LeaseLost', 'LeaseNotPresentWithBlobOperation']).toContain(late.headers['x-ms-error-code']);
        const lastTag = answers
          .map(({ headers }) => headers.etag ?? '')
          .sort()
          .at(-1)!;
        const found = await running.request('GET', path);
        if (lastTag !== '') {
          expect(found.headers.etag).toBe(lastTag);
          expect(found.text).toBe(`${round}-${answers.findIndex(({ headers }) => headers.etag === lastTag)}`);
        }
      }
    });
  });
});
