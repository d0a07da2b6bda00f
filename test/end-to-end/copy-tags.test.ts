/** Tags of copy sources: x-ms-source-if-tags, and x-ms-copy-source-tag-option. */
import { BlobSASPermissions, type BlockBlobClient } from '@azure/storage-blob';
import { check } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { pathOf } from '../support/blocks.ts';
import {
  expectError,
  expectRefusal,
  onEngine,
  onEveryEngine,
  type RawRequest,
  type Running,
} from '../support/test-server.ts';

const MET = `"color" = 'red'`;
const UNMET = `"color" = 'blue'`;
const ELSEWHERE = 'http://127.0.0.1:9';

async function pair(running: Running) {
  const container = await running.newContainer();
  const from = container.getBlockBlobClient('from');
  await from.upload('x', 1, { tags: { color: 'red', size: '1' } });
  return { container, from, to: container.getBlockBlobClient('to') };
}

const signed = (blob: BlockBlobClient, permissions = 'rt') =>
  blob.generateSasUrl({
    permissions: BlobSASPermissions.parse(permissions),
    expiresOn: new Date(Date.now() + 3_600_000),
  });

const FROM_URL = {
  'Put Blob From URL': { 'x-ms-blob-type': 'BlockBlob' },
  'Copy Blob From URL': { 'x-ms-requires-sync': 'true' },
} as const;

function ask(running: Running, to: BlockBlobClient, source: string, headers: RawRequest['headers']) {
  return running.request('PUT', pathOf(to), { headers: { 'x-ms-copy-source': source, ...headers } });
}

describe('Tags of a copy source', () => {
  onEveryEngine((running) => {
    it('decide whether Copy Blob happens', async () => {
      const { from, to } = await pair(running);
      const copy = (tagConditions: string) => to.beginCopyFromURL(from.url, { sourceConditions: { tagConditions } });
      await expectRefusal(copy(UNMET), 412, 'ConditionNotMet');
      expect(await to.exists()).toBe(false);
      await copy(MET);
      expect((await to.getTags()).tags).toEqual({});
      await expectRefusal(copy('no condition'), 400, 'InvalidHeaderValue');
    });

    it.each(Object.entries(FROM_URL))('are copied by %s if it says so, and can be searched', async (_, kind) => {
      const { container, from, to } = await pair(running);
      const option = (value: string, more = {}) => ({ ...kind, 'x-ms-copy-source-tag-option': value, ...more });
      const url = await signed(from);
      expect((await ask(running, to, url, option('REPLACE', { 'x-ms-tags': 'a=b' }))).status).toBeLessThan(300);
      expect((await to.getTags()).tags).toEqual({ a: 'b' });
      expect((await ask(running, to, url, option('COPY'))).status).toBeLessThan(300);
      expect((await to.getTags()).tags).toEqual({ color: 'red', size: '1' });
      const found: string[] = [];
      for await (const { name } of container.findBlobsByTags(MET)) found.push(name);
      expect(found).toEqual(['from', 'to']);
      expectError(await ask(running, to, url, option('COPY', { 'x-ms-tags': 'a=b' })), 400, 'InvalidHeaderValue');
      expectError(await ask(running, to, url, option('MOVE')), 400, 'InvalidHeaderValue');
      if (running.engine !== 'memory') expect((await check(running.where)).findings).toEqual([]);
    });
  });

  onEngine(
    'LMDB',
    (running) => {
      it('decide whether Put Blob From URL happens', async () => {
        const { from, to } = await pair(running);
        const put = async (condition: string) =>
          ask(running, to, await signed(from), { ...FROM_URL['Put Blob From URL'], 'x-ms-source-if-tags': condition });
        expectError(await put(UNMET), 412, 'CannotVerifyCopySource');
        expect((await put(MET)).status).toBe(201);
      });

      it('need the right to them', async () => {
        const { from, to } = await pair(running);
        for (const headers of [
          { 'x-ms-source-if-tags': MET },
          { ...FROM_URL['Put Blob From URL'], 'x-ms-source-if-tags': MET },
          { ...FROM_URL['Copy Blob From URL'], 'x-ms-copy-source-tag-option': 'COPY' },
        ]) {
          expectError(await ask(running, to, await signed(from, 'r'), headers), 403, 'CannotVerifyCopySource');
          expect((await ask(running, to, await signed(from, 'rt'), headers)).status).toBeLessThan(300);
        }
      });

      it('are not read from other servers', async () => {
        const { to } = await pair(running);
        const source = `${ELSEWHERE}/c/b`;
        expectError(await ask(running, to, source, { 'x-ms-source-if-tags': MET }), 501, 'NotImplemented');
        const option = { ...FROM_URL['Copy Blob From URL'], 'x-ms-copy-source-tag-option': 'COPY' };
        expectError(await ask(running, to, source, option), 501, 'NotImplemented');
      });
    },
    { start: { copyFrom: [ELSEWHERE] } },
  );
});
