import { randomBytes } from 'node:crypto';
import { BlobSASPermissions, type BlockBlobClient } from '@azure/storage-blob';
import { check } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { id } from '../support/blocks.ts';
import { expectRefusal, onEveryDisk } from '../support/test-server.ts';

const LENGTHS = [10, 300_000];
const COPIES = 40;

/** Bytes that differ from one write to the next in every place. */
const bytesOf = (number: number, length: number) => Buffer.alloc(length, `${number};`);

type Copy = (to: BlockBlobClient, url: string) => Promise<unknown>;
const OPERATIONS: Record<string, Copy> = {
  'Put Blob From URL': (to, url) => to.syncUploadFromURL(url),
  'Copy Blob From URL': (to, url) => to.syncCopyFromURL(url),
  'Put Block From URL': async (to, url) => {
    await to.stageBlockFromURL(id('a'), url);
    await to.commitBlockList([id('a')]);
  },
};

describe('A source that is overwritten while it is copied', () => {
  onEveryDisk((running) => {
    it.each(Object.entries(OPERATIONS))('gives %s one of its states, never a mix', async (_, copy) => {
      for (const length of LENGTHS) {
        const container = await running.newContainer();
        const from = container.getBlockBlobClient('from');
        const write = (number: number) => from.upload(bytesOf(number, length), length);
        await write(100);
        const url = await signed(from);
        let copied = 0;
        const seen = new Set<number>();
        const writer = async () => {
          for (let number = 101; copied < COPIES; number++) await write(number);
        };
        const copier = async (at: number) => {
          const to = container.getBlockBlobClient(`to-${at}`);
          for (; copied < COPIES; copied++) {
            await copy(to, url);
            const found = await to.downloadToBuffer();
            const number = Number.parseInt(found.toString(), 10);
            expect(found.equals(bytesOf(number, length))).toBe(true);
            seen.add(number);
          }
        };
        await Promise.all([writer(), copier(0), copier(1), copier(2)]);
        expect(seen.size).toBeGreaterThan(1);
      }
      expect((await check(running.where)).findings).toEqual([]);
    });

    it('is copied only as the version that its ETag names', async () => {
      const container = await running.newContainer();
      const from = container.getBlockBlobClient('from');
      const to = container.getBlockBlobClient('to');
      const old = randomBytes(50_000);
      const { etag } = await from.upload(old, old.length);
      const url = await signed(from);
      const sourceConditions = { ifMatch: etag! };
      await to.syncUploadFromURL(url, { sourceConditions });
      await from.upload('new', 3);
      await expectRefusal(to.syncUploadFromURL(url, { sourceConditions }), 412, 'CannotVerifyCopySource');
      await expectRefusal(to.syncCopyFromURL(url, { sourceConditions }), 412, 'CannotVerifyCopySource');
      expect((await to.downloadToBuffer()).equals(old)).toBe(true);
      expect((await check(running.where)).findings).toEqual([]);
    });
  });
});

const signed = (blob: BlockBlobClient) =>
  blob.generateSasUrl({ permissions: BlobSASPermissions.parse('r'), expiresOn: new Date(Date.now() + 3_600_000) });
