import { describe, expect, it } from 'vitest';
import { onEveryDisk, type Running } from '../support/test-server.ts';

const CLIENTS = 64;

describe('64 clients on one blob', () => {
  onEveryDisk((running) => {
    it('of those with the same If-Match exactly one wins, and its bytes stay', async () => {
      for (let round = 0; round < 5; round++) {
        const { containerName, ...container } = await newContainer(running);
        const { etag } = (await container.upload('blob', 'first')).headers;
        const answers = await everyClient((at) => container.upload('blob', `client ${at}`, { 'If-Match': etag! }));
        const winners = answers.filter(({ status }) => status === 201);
        expect(winners).toHaveLength(1);
        for (const { status, headers } of answers) {
          if (status !== 201) expect([status, headers['x-ms-error-code']]).toEqual([412, 'ConditionNotMet']);
        }
        const found = await running.request('GET', `/${containerName}/blob`);
        expect(found.headers.etag).toBe(winners[0]!.headers.etag);
        expect(found.text).toBe(`client ${answers.indexOf(winners[0]!)}`);
      }
    });

    it('of those that create it exactly one does', async () => {
      for (let round = 0; round < 5; round++) {
        const { containerName, ...container } = await newContainer(running);
        const answers = await everyClient((at) => container.upload('blob', `client ${at}`, { 'If-None-Match': '*' }));
        const winners = answers.filter(({ status }) => status === 201);
        expect(winners).toHaveLength(1);
        for (const { status, headers } of answers) {
          if (status !== 201) expect([status, headers['x-ms-error-code']]).toEqual([409, 'BlobAlreadyExists']);
        }
        const found = await running.request('GET', `/${containerName}/blob`);
        expect(found.text).toBe(`client ${answers.indexOf(winners[0]!)}`);
      }
    });

    it('that claim it as the checkpoint stores of event processors do: no two own it at once', async () => {
      const { containerName, ...container } = await newContainer(running);
      const claim = (owner: number, condition: Record<string, string>) =>
        running.request('PUT', `/${containerName}/partition?comp=metadata`, {
          headers: { 'x-ms-meta-ownerid': `client ${owner}`, ...condition },
        });
      const claimants = Array.from({ length: 20 }, (_, at) => at);
      // Unclaimed: the first upload owns it. Setting the metadata of an existing blob is never a first claim.
      const first = await Promise.all([
        ...claimants.map((at) => container.upload('partition', '', claimOf(at))),
        ...claimants.map((at) => claim(at, { 'If-None-Match': '*' })),
      ]);
      expect(first.filter(({ status }) => status < 300)).toHaveLength(1);
      for (const round of [1, 2, 3]) {
        const again = await Promise.all(claimants.map((at) => claim(at, { 'If-None-Match': '*' })));
        for (const { status, headers } of again) {
          expect([round, status, headers['x-ms-error-code']]).toEqual([round, 412, 'ConditionNotMet']);
        }
        // The owner is gone: exactly one client that saw its ETag takes over.
        const { etag } = (await running.request('HEAD', `/${containerName}/partition`)).headers;
        const taken = await Promise.all(claimants.map((at) => claim(at, { 'If-Match': etag! })));
        const winners = taken.filter(({ status }) => status === 200);
        expect(winners).toHaveLength(1);
        const found = await running.request('HEAD', `/${containerName}/partition`);
        expect(found.headers['x-ms-meta-ownerid']).toBe(`client ${taken.indexOf(winners[0]!)}`);
      }
    });

    it('that overwrite it without a condition all succeed, each with an ETag of its own, and the greatest stays', async () => {
      const { containerName, ...container } = await newContainer(running);
      const answers = await everyClient((at) => container.upload('blob', `client ${at}`));
      const etags = answers.map(({ status, headers }) => {
        expect(status).toBe(201);
        return headers.etag!;
      });
      expect(new Set(etags).size).toBe(CLIENTS);
      const last = [...etags].sort().at(-1)!;
      const found = await running.request('GET', `/${containerName}/blob`);
      expect(found.headers.etag).toBe(last);
      expect(found.text).toBe(`client ${etags.indexOf(last)}`);
    });

    it('that delete it with the same ETag: exactly one does', async () => {
      const { containerName, ...container } = await newContainer(running);
      const { etag } = (await container.upload('blob', 'x')).headers;
      const answers = await everyClient(() =>
        running.request('DELETE', `/${containerName}/blob`, { headers: { 'If-Match': etag! } }),
      );
      expect(answers.filter(({ status }) => status === 202)).toHaveLength(1);
      expect(answers.filter(({ status }) => status === 404)).toHaveLength(CLIENTS - 1);
    });

    it('that count by ETag lose no update', async () => {
      const clients = 10;
      const countsEach = 6;
      const container = await running.newContainer();
      await container.uploadBlockBlob('counter', '0', 1);
      const count = async () => {
        const blob = running.service.getContainerClient(container.containerName).getBlockBlobClient('counter');
        for (let done = 0; done < countsEach; ) {
          const found = await blob.download();
          const chunks: Buffer[] = [];
          for await (const chunk of found.readableStreamBody!) chunks.push(Buffer.from(chunk));
          const next = String(Number(Buffer.concat(chunks)) + 1);
          try {
            await blob.upload(next, next.length, { conditions: { ifMatch: found.etag! } });
            done++;
          } catch (error) {
            if ((error as { statusCode?: number }).statusCode !== 412) throw error;
          }
        }
      };
      await Promise.all(Array.from({ length: clients }, count));
      const total = await container.getBlobClient('counter').downloadToBuffer();
      expect(Number(total)).toBe(clients * countsEach);
    });

    it('that put and delete it never see half of it', async () => {
      const { containerName, ...container } = await newContainer(running);
      let going = true;
      const writers = [0, 1, 2, 3].map(async (writer) => {
        for (let at = 0; at < 40; at++) {
          const body = `${writer}-${at};`.repeat(200 + at);
          expect((await container.upload('blob', body, { 'x-ms-meta-length': String(body.length) })).status).toBe(201);
          await running.request('DELETE', `/${containerName}/blob`);
        }
      });
      const readers = [0, 1, 2, 3].map(async () => {
        while (going) {
          const { status, text, headers } = await running.request('GET', `/${containerName}/blob`);
          if (status === 404) continue;
          expect(status).toBe(200);
          expect(text.length).toBe(Number(headers['x-ms-meta-length']));
          expect(new Set(text.split(';')).size).toBe(2);
        }
      });
      await Promise.all(writers);
      going = false;
      await Promise.all(readers);
    });
  });
});

function everyClient<T>(act: (at: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: CLIENTS }, (_, at) => act(at)));
}

const claimOf = (owner: number): Record<string, string> => ({
  'If-None-Match': '*',
  'x-ms-meta-ownerid': `client ${owner}`,
});

async function newContainer(running: Running) {
  const { containerName } = await running.newContainer();
  return {
    containerName,
    upload: (blob: string, body: string, headers: Record<string, string> = {}) =>
      running.request('PUT', `/${containerName}/${blob}`, {
        headers: { 'x-ms-blob-type': 'BlockBlob', ...headers },
        body,
      }),
  };
}
