import { createHash, randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { blocksOf, type Choice, commit, id, listXmlOf, pathOf, stage, textOf } from '../support/blocks.ts';
import { expectError, expectRefusal, onEveryEngine, onLmdb } from '../support/test-server.ts';

const md5 = (body: string) => createHash('md5').update(body).digest('base64');

describe('Put Block List', () => {
  onEveryEngine((running) => {
    const newBlob = async () => (await running.newContainer()).getBlockBlobClient('blob');

    it('makes a blob of the blocks in the order of the list, and drops all others', async () => {
      const blob = await newBlob();
      await stage(blob, 'a1', 'b2', 'c3', 'd4');
      await blob.commitBlockList([id('c'), id('a'), id('d')]);
      expect(await textOf(blob)).toBe('c3a1d4');
      expect(await blocksOf(blob)).toEqual({ committed: ['c', 'a', 'd'], uncommitted: [] });
    });

    it('uses a block as often as it is listed', async () => {
      const blob = await newBlob();
      await stage(blob, 'a1', 'b2');
      await blob.commitBlockList([id('a'), id('b'), id('a'), id('a')]);
      expect(await textOf(blob)).toBe('a1b2a1a1');
      await blob.commitBlockList([id('a'), id('a')]);
      expect(await textOf(blob)).toBe('a1a1');
    });

    it('uses blocks from the list that is named', async () => {
      const blob = await newBlob();
      await stage(blob, 'a1', 'b1');
      await commit(running, blob, [
        ['Uncommitted', 'a'],
        ['Latest', 'b'],
      ]);
      await stage(blob, 'a2', 'c2');
      const mixed: Choice[] = [
        ['Committed', 'a'],
        ['Uncommitted', 'a'],
        ['Latest', 'a'],
        ['Latest', 'b'],
        ['Latest', 'c'],
      ];
      expect((await commit(running, blob, mixed)).status).toBe(201);
      expect(await textOf(blob)).toBe('a1a2a2b1c2');
    });

    it('refuses a list with a block that the named list does not have, and changes nothing', async () => {
      const blob = await newBlob();
      await stage(blob, 'a1', 'b1');
      await blob.commitBlockList([id('a')]);
      await stage(blob, 'c2');
      const wrong: Choice[] = [
        ['Committed', 'c'],
        ['Uncommitted', 'a'],
        ['Latest', 'b'],
        ['Latest', 'long'],
      ];
      for (const choice of wrong) {
        expectError(await commit(running, blob, [['Latest', 'a'], choice]), 400, 'InvalidBlockList');
      }
      expect(await textOf(blob)).toBe('a1');
      expect(await blocksOf(blob)).toEqual({ committed: ['a'], uncommitted: ['c'] });
    });

    it('replaces the content of Put Blob, which is no block', async () => {
      const blob = await newBlob();
      await blob.upload('x'.repeat(100_000), 100_000, { metadata: { a: '1' } });
      await stage(blob, 'a1');
      expectError(await commit(running, blob, [['Committed', 'a']]), 400, 'InvalidBlockList');
      await blob.commitBlockList([id('a')]);
      expect(await textOf(blob)).toBe('a1');
      expect((await blob.getProperties()).metadata).toEqual({});
    });

    it('makes an empty blob of an empty list', async () => {
      const blob = await newBlob();
      await stage(blob, 'a1');
      await blob.commitBlockList([]);
      expect(await textOf(blob)).toBe('');
      expect(await blocksOf(blob)).toEqual({ committed: [], uncommitted: [] });
    });

    it('sets headers and metadata, and clears those that are not sent', async () => {
      const blob = await newBlob();
      await stage(blob, 'a1');
      const { etag, lastModified } = await blob.commitBlockList([id('a')], {
        metadata: { owner: 'me' },
        blobHTTPHeaders: { blobContentType: 'text/plain', blobCacheControl: 'no-store', blobContentLanguage: 'de' },
      });
      expect(await blob.getProperties()).toMatchObject({
        etag,
        lastModified,
        contentLength: 2,
        contentType: 'text/plain',
        cacheControl: 'no-store',
        contentLanguage: 'de',
        metadata: { owner: 'me' },
      });
      expect((await blob.getProperties()).contentMD5).toBeUndefined();
      await blob.commitBlockList([id('a')]);
      const found = await blob.getProperties();
      expect(found).toMatchObject({ contentType: 'application/octet-stream', metadata: {} });
      expect(found.cacheControl).toBeUndefined();
    });

    it('honours conditions; uncommitted blocks are no blob to them', async () => {
      const blob = await newBlob();
      await stage(blob, 'a1');
      const put = (conditions: object) => blob.commitBlockList([id('a')], { conditions });
      await expectRefusal(put({ ifMatch: '*' }), 412, 'ConditionNotMet');
      const { etag, lastModified } = await put({ ifNoneMatch: '*' });
      await expectRefusal(put({ ifNoneMatch: '*' }), 409, 'BlobAlreadyExists');
      await expectRefusal(put({ ifMatch: '"0x1"' }), 412, 'ConditionNotMet');
      await expectRefusal(put({ ifModifiedSince: lastModified }), 412, 'ConditionNotMet');
      await put({ ifMatch: etag });
      await expectRefusal(put({ ifMatch: etag }), 412, 'ConditionNotMet');
    });

    it('needs the lease id while leased, and keeps the lease', async () => {
      const blob = await newBlob();
      await stage(blob, 'a1');
      await blob.commitBlockList([id('a')]);
      const lease = blob.getBlobLeaseClient();
      await lease.acquireLease(-1);
      const put = (leaseId?: string) => blob.commitBlockList([id('a')], { conditions: { leaseId: leaseId! } });
      await expectRefusal(put(), 412, 'LeaseIdMissing');
      await expectRefusal(put(randomUUID()), 412, 'LeaseIdMismatchWithBlobOperation');
      await put(lease.leaseId);
      expect((await blob.getProperties()).leaseState).toBe('leased');
    });

    it('commits lists that are too long for one transaction', async () => {
      const blob = await newBlob();
      const names = Array.from({ length: 1_100 }, (_, at) => String(at).padStart(4, '0'));
      for (let from = 0; from < names.length; from += 100) {
        await Promise.all(names.slice(from, from + 100).map((name) => blob.stageBlock(id(name), name, 4)));
      }
      const order = [...names.toReversed(), ...names.slice(0, 10)];
      await blob.commitBlockList(order.map(id), { metadata: { long: 'yes' } });
      expect(await textOf(blob)).toBe(order.join(''));
      expect((await blob.getProperties()).metadata).toEqual({ long: 'yes' });
      expect(await blocksOf(blob)).toEqual({ committed: order, uncommitted: [] });

      await blob.stageBlock(id('0000'), 'new!', 4);
      const mixed: Choice[] = [
        ...names.map((name): Choice => ['Latest', name]),
        ['Committed', '0000'],
        ['Uncommitted', '0000'],
      ];
      expect((await commit(running, blob, mixed)).status).toBe(201);
      expect(await textOf(blob)).toBe(`new!${names.slice(1).join('')}0000new!`);
      expectError(await commit(running, blob, [...mixed, ['Latest', 'nope']]), 400, 'InvalidBlockList');
      expectError(await commit(running, blob, mixed, { 'If-None-Match': '*' }), 409, 'BlobAlreadyExists');
      expect(await textOf(blob)).toBe(`new!${names.slice(1).join('')}0000new!`);
    });
  });

  onLmdb((running) => {
    const newBlob = async () => (await running.newContainer()).getBlockBlobClient('blob');

    it('accepts 50,000 blocks and refuses one more', async () => {
      const blob = await newBlob();
      await stage(blob, 'a1', 'b2');
      const choices: Choice[] = Array.from({ length: 50_000 }, (_, at) => ['Latest', at % 2 === 0 ? 'a' : 'b']);
      expectError(await commit(running, blob, [...choices, ['Latest', 'a']]), 400, 'BlockListTooLong');
      expect((await commit(running, blob, choices)).status).toBe(201);
      expect((await blob.getProperties()).contentLength).toBe(100_000);
      for (const from of [0, 47_996, 99_960]) {
        expect((await blob.downloadToBuffer(from, 40)).toString()).toBe('a1b2'.repeat(10));
      }
      const { committedBlocks } = await blob.getBlockList('committed');
      expect(committedBlocks).toHaveLength(50_000);
      await blob.delete();
    });

    it('answers with the checksum of the list itself', async () => {
      const blob = await newBlob();
      await stage(blob, 'a1');
      const answer = await commit(running, blob, [['Latest', 'a']], {
        'Content-MD5': md5(listXmlOf([['Latest', 'a']])),
      });
      expect(answer.status).toBe(201);
      expect(answer.headers['x-ms-content-crc64']).toMatch(/^[\w+/]{11}=$/);
      expect(answer.headers['x-ms-request-server-encrypted']).toBe('true');
      expect(answer.headers).not.toHaveProperty('content-md5');
      expectError(await commit(running, blob, [['Latest', 'a']], { 'Content-MD5': md5('other') }), 400, 'Md5Mismatch');
    });

    it.each([
      ['nothing', ''],
      ['what is not XML', 'blocks'],
      ['a document that ends too early', '<BlockList><Latest>YQ==</Latest>'],
      ['another root', '<Blocks><Latest>YQ==</Latest></Blocks>'],
      ['an unknown element', '<BlockList><Newest>YQ==</Newest></BlockList>'],
      ['elements in elements', '<BlockList><Latest><Latest>YQ==</Latest></Latest></BlockList>'],
      ['8 MB of one id', `<BlockList><Latest>${'A'.repeat(8_000_000)}</Latest></BlockList>`],
      ['1.6 million entities', `<BlockList><Latest>${'&#65;'.repeat(1_600_000)}</Latest></BlockList>`],
      [
        '700,000 attributes',
        `<BlockList><Latest ${Array.from({ length: 700_000 }, (_, at) => `a${at}=""`).join(' ')}/></BlockList>`,
      ],
    ])('refuses %s', async (_, body) => {
      const blob = await newBlob();
      await stage(blob, 'a1');
      expectError(await running.request('PUT', `${pathOf(blob)}?comp=blocklist`, { body }), 400, 'InvalidXmlDocument');
      expect(await blocksOf(blob)).toEqual({ committed: [], uncommitted: ['a'] });
    });

    it('accepts white space around elements and ids', async () => {
      const blob = await newBlob();
      await stage(blob, 'a1');
      const body = '\ufeff<?xml version="1.0"?>\r\n<BlockList>\r\n  <Latest>\r\n YQ==\t</Latest>\n</BlockList>\n';
      expect((await running.request('PUT', `${pathOf(blob)}?comp=blocklist`, { body })).status).toBe(201);
      expect(await textOf(blob)).toBe('a1');
    });

    it('never mixes a block with the one that replaced it', async () => {
      const blob = await newBlob();
      const names = Array.from({ length: 600 }, (_, at) => String(at).padStart(4, '0'));
      for (let round = 0; round < 3; round++) {
        const letter = 'abc'[round]!;
        const put = (name: string) => blob.stageBlock(id(name), letter, 1);
        for (let from = 0; from < names.length; from += 100) {
          await Promise.all(names.slice(from, from + 100).map(put));
        }
        const replace = Promise.all(
          names.slice(0, 50).map((name) => blob.stageBlock(id(name), letter.toUpperCase(), 1)),
        );
        const done = blob.commitBlockList(names.map(id)).then(
          () => true,
          () => false,
        );
        await replace;
        expect(await done).toBe(true);
        // Each of the first is the old or the new one, whichever was there; all others are of this round.
        expect(await textOf(blob)).toMatch(new RegExp(`^[${letter}${letter.toUpperCase()}]{50}${letter}{550}$`));
      }
    });

    it('needs a container', async () => {
      const blob = running.service.getContainerClient('not-there').getBlockBlobClient('blob');
      await expectRefusal(blob.commitBlockList([]), 404, 'ContainerNotFound');
    });
  });
});
