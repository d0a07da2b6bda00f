import { describe, expect, it } from 'vitest';
import { blocksOf, id, pathOf, stage } from '../support/blocks.ts';
import { expectError, expectRefusal, onEveryEngine } from '../support/test-server.ts';

describe('Get Block List', () => {
  onEveryEngine((running) => {
    const newBlob = async () => (await running.newContainer()).getBlockBlobClient('blob');

    it('gives the lists that are asked for, with sizes', async () => {
      const blob = await newBlob();
      await stage(blob, 'b1', 'a22');
      const { etag } = await blob.commitBlockList([id('b'), id('a')]);
      await stage(blob, 'd4444', 'c333');
      const committed = [
        { name: id('b'), size: 2 },
        { name: id('a'), size: 3 },
      ];
      // In the order of their ids.
      const uncommitted = [
        { name: id('c'), size: 4 },
        { name: id('d'), size: 5 },
      ];
      const all = await blob.getBlockList('all');
      expect(all).toMatchObject({
        committedBlocks: committed,
        uncommittedBlocks: uncommitted,
        etag,
        blobContentLength: 5,
      });
      expect((await blob.getBlockList('uncommitted')).uncommittedBlocks).toEqual(uncommitted);
      const plain = await running.request('GET', `${pathOf(blob)}?comp=blocklist`);
      expect(plain.text).toContain('<CommittedBlocks><Block><Name>Yg==</Name><Size>2</Size></Block>');
      expect(plain.text).not.toContain('UncommittedBlocks');
      const other = await running.request('GET', `${pathOf(blob)}?comp=blocklist&blocklisttype=Uncommitted`);
      expect(other.text).not.toContain('<CommittedBlocks');
    });

    it('lists no blocks of a blob that Put Blob wrote', async () => {
      const blob = await newBlob();
      await blob.upload('x'.repeat(50_000), 50_000);
      const answer = await running.request('GET', `${pathOf(blob)}?comp=blocklist&blocklisttype=all`);
      expect(answer.text).toContain('<BlockList><CommittedBlocks /><UncommittedBlocks /></BlockList>');
      expect(answer.headers['x-ms-blob-content-length']).toBe('50000');
    });

    it('has no ETag where nothing is committed', async () => {
      const blob = await newBlob();
      await stage(blob, 'a1');
      const answer = await running.request('GET', `${pathOf(blob)}?comp=blocklist&blocklisttype=all`);
      expect(answer.status).toBe(200);
      for (const name of ['etag', 'last-modified', 'x-ms-blob-content-length']) {
        expect(answer.headers).not.toHaveProperty(name);
      }
    });

    it('forgets uncommitted blocks when the blob is put, copied or deleted', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      const other = container.getBlockBlobClient('other');
      await other.upload('x', 1);
      for (const write of [
        () => blob.upload('x', 1),
        async () => (await blob.beginCopyFromURL(other.url)).pollUntilDone(),
        async () => {
          await blob.delete();
          await blob.upload('x', 1);
        },
      ]) {
        await stage(blob, 'a1');
        await write();
        expect(await blocksOf(blob)).toEqual({ committed: [], uncommitted: [] });
      }
    });

    it('refuses what it cannot give', async () => {
      const blob = await newBlob();
      await expectRefusal(blob.getBlockList('all'), 404, 'BlobNotFound');
      await stage(blob, 'a1');
      const ask = (query: string) => running.request('GET', `${pathOf(blob)}?comp=blocklist&${query}`);
      expectError(await ask('blocklisttype=some'), 400, 'InvalidQueryParameterValue');
      expectError(await ask('snapshot=2020-01-01T00:00:00.0000000Z'), 404, 'BlobNotFound');
    });
  });
});
