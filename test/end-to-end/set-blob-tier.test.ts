import type { BlockBlobClient } from '@azure/storage-blob';
import { check, start } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { id } from '../support/blocks.ts';
import { newFolder } from '../support/disposable-servers.ts';
import { clientOf, expectError, expectRefusal, listXml, onEngine, onEveryEngine } from '../support/test-server.ts';
import { copyCells, HIGH_SECONDS, STANDARD_SECONDS, setTierCells, type TierAction } from '../truth-tables/tiers.ts';

/** The tier, and the rehydration that is pending. */
async function tierOf(blob: BlockBlobClient) {
  const { accessTier, archiveStatus, rehydratePriority } = await blob.getProperties();
  return [accessTier, archiveStatus, rehydratePriority];
}

const pendingTo = (tier: string, priority = 'Standard') => [
  'Archive',
  `rehydrate-pending-to-${tier.toLowerCase()}`,
  priority,
];
const online = (tier: string) => [tier, undefined, undefined];

/** Seconds here for one of the table: none of these rehydrations ends by itself while a test runs. */
const SLOWER = 1_000;
const STANDARD = STANDARD_SECONDS * SLOWER;
const HIGH = HIGH_SECONDS * SLOWER;
const slow = { start: { rehydrationSeconds: STANDARD } };

describe('Set Blob Tier', () => {
  onEveryEngine((running) => {
    const newBlob = async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      return { blob, ...(await blob.upload('content', 7)) };
    };

    it('changes the tier, and neither ETag, Last-Modified, content nor metadata', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await blob.upload('content', 7, { metadata: { a: 'b' } });
      const before = await blob.getProperties();
      expect([before.accessTier, before.accessTierInferred, before.accessTierChangedOn]).toEqual([
        'Hot',
        true,
        undefined,
      ]);
      for (const tier of ['Cool', 'Cold', 'Hot', 'Archive']) {
        expect((await blob.setAccessTier(tier))._response.status).toBe(200);
        const { accessTier, accessTierInferred, accessTierChangedOn, etag, lastModified, metadata } =
          await blob.getProperties();
        expect([accessTier, accessTierInferred, metadata]).toEqual([tier, undefined, { a: 'b' }]);
        expect(accessTierChangedOn).toBeInstanceOf(Date);
        expect([etag, lastModified]).toEqual([before.etag, before.lastModified]);
        if (tier !== 'Archive') expect(String(await blob.downloadToBuffer())).toBe('content');
      }
    });

    it('brings a blob back from the archive after the time that is set, or a fifth of it with high priority', async () => {
      for (const [priority, seconds] of [[undefined, STANDARD] as const, ['High', HIGH] as const]) {
        const { blob, etag } = await newBlob();
        await blob.setAccessTier('Archive');
        await expectRefusal(blob.downloadToBuffer(), 409, 'BlobArchived');
        const set = await blob.setAccessTier('Cool', priority ? { rehydratePriority: priority } : {});
        expect(set._response.status).toBe(202);
        expect(await tierOf(blob)).toEqual(pendingTo('Cool', priority));
        await expectRefusal(blob.downloadToBuffer(), 409, 'BlobArchived');
        await running.server.clock.advance(seconds - HIGH / 2);
        expect(await tierOf(blob)).toEqual(pendingTo('Cool', priority));
        await running.server.clock.advance(HIGH / 2);
        expect(await tierOf(blob)).toEqual(online('Cool'));
        expect(String(await blob.downloadToBuffer())).toBe('content');
        expect((await blob.getProperties()).etag).toBe(etag);
      }
    });

    it('is refused for another tier while a rehydration is pending, and its priority can be raised', async () => {
      const { blob } = await newBlob();
      await blob.setAccessTier('Archive');
      await blob.setAccessTier('Hot');
      for (const tier of ['Cool', 'Cold', 'Archive']) {
        await expectRefusal(blob.setAccessTier(tier), 409, 'BlobBeingRehydrated');
      }
      expect((await blob.setAccessTier('Hot', { rehydratePriority: 'High' }))._response.status).toBe(202);
      expect((await blob.setAccessTier('Hot', { rehydratePriority: 'Standard' }))._response.status).toBe(202);
      expect(await tierOf(blob)).toEqual(pendingTo('Hot', 'High'));
      await running.server.clock.advance(HIGH);
      expect(await tierOf(blob)).toEqual(online('Hot'));
    });

    it('is shown by List Blobs, as by Get Blob Properties', async () => {
      const container = await running.newContainer();
      for (const [name, tier] of [
        ['a', undefined],
        ['b', 'Cool'],
        ['c', 'Archive'],
      ] as const) {
        await container.getBlockBlobClient(name).upload('x', 1, tier ? { tier } : {});
      }
      const archived = container.getBlockBlobClient('c');
      await archived.setAccessTier('Hot', { rehydratePriority: 'High' });
      const listed = async () => {
        const found = [];
        for await (const { properties } of container.listBlobsFlat()) {
          const { accessTier, accessTierInferred, archiveStatus, rehydratePriority, accessTierChangedOn } = properties;
          found.push([accessTier, accessTierInferred, archiveStatus, rehydratePriority, !!accessTierChangedOn]);
        }
        return found;
      };
      const first = [
        ['Hot', true, undefined, undefined, false],
        ['Cool', undefined, undefined, undefined, true],
      ];
      expect(await listed()).toEqual([...first, ['Archive', undefined, 'rehydrate-pending-to-hot', 'High', true]]);
      expect(await listXml(running, container.containerName)).toContain(
        '<AccessTier>Archive</AccessTier><ArchiveStatus>rehydrate-pending-to-hot</ArchiveStatus>' +
          '<RehydratePriority>High</RehydratePriority><AccessTierChangeTime>',
      );
      await running.server.clock.advance(HIGH);
      expect(await listed()).toEqual([...first, ['Hot', undefined, undefined, undefined, true]]);
    });

    it('honours leases, keeps them, and takes no conditions', async () => {
      const { blob } = await newBlob();
      await expectRefusal(
        blob.setAccessTier('Cool', { conditions: { leaseId: 'aaaaaaaa-0000-4000-8000-00000000000a' } }),
        412,
        'LeaseNotPresentWithBlobOperation',
      );
      const { leaseId } = await blob.getBlobLeaseClient().acquireLease(15);
      await expectRefusal(blob.setAccessTier('Cool'), 412, 'LeaseIdMissing');
      await blob.setAccessTier('Cool', { conditions: { leaseId: leaseId! } });
      expect((await blob.getProperties()).leaseState).toBe('leased');
      await running.server.clock.advance(15);
      await blob.setAccessTier('Cold');
      expect((await blob.getProperties()).leaseState).toBe('expired');
      const headers = { 'x-ms-access-tier': 'Hot', 'If-Match': '*' };
      const answer = await running.request('PUT', `/${blob.containerName}/blob?comp=tier`, { headers });
      expectError(answer, 400, 'ConditionHeadersNotSupported');
    });

    it('leaves an archived blob its properties, its lease and its deletion, and refuses all else', async () => {
      const { blob } = await newBlob();
      await blob.setAccessTier('Archive');
      const path = `/${blob.containerName}/blob`;
      expect((await running.request('GET', `${path}?comp=metadata`)).status).toBe(200);
      const refusals = [
        () => blob.download(0, 1),
        () => blob.upload('new', 3),
        () => blob.upload('new', 3, { tier: 'Hot' }),
        () => blob.setMetadata({ a: 'b' }),
        () => blob.setHTTPHeaders({ blobContentType: 'a/b' }),
        () => blob.stageBlock(id('a'), 'x', 1),
        () => blob.commitBlockList([]),
        () => blob.getBlockList('committed'),
        () => blob.beginCopyFromURL(blob.url, { tier: 'Hot' }),
      ];
      for (const refused of refusals) await expectRefusal(refused(), 409, 'BlobArchived');
      await blob.setAccessTier('Hot');
      for (const refused of refusals.slice(0, -1)) await expectRefusal(refused(), 409, 'BlobArchived');
      await expectRefusal(blob.upload('new', 3, { conditions: { ifMatch: '"0x1"' } }), 412, 'ConditionNotMet');
      const { leaseId } = await blob.getBlobLeaseClient().acquireLease(-1);
      await blob.delete({ conditions: { leaseId: leaseId! } });
      expect(await blob.exists()).toBe(false);
    });

    it('comes with Put Blob, Put Block List and Copy Blob, and stays with what is overwritten', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload('1', 1, { tier: 'Cool' });
      expect(await tierOf(blob)).toEqual(online('Cool'));
      await blob.upload('2', 1);
      expect(await tierOf(blob)).toEqual(online('Cool'));
      await blob.stageBlock(id('a'), 'x', 1);
      await blob.commitBlockList([id('a')], { tier: 'Cold' });
      expect(await tierOf(blob)).toEqual(online('Cold'));
      await blob.stageBlock(id('b'), 'x', 1);
      // So long that it is prepared in slices.
      const long = Array.from({ length: 500 }, () => id('b'));
      await blob.commitBlockList(long);
      expect(await tierOf(blob)).toEqual(online('Cold'));
      await blob.commitBlockList(long, { tier: 'Cool' });
      expect(await tierOf(blob)).toEqual(online('Cool'));
      await blob.setMetadata({ a: 'b' });
      await blob.setHTTPHeaders({});
      expect(await tierOf(blob)).toEqual(online('Cool'));
      const copy = container.getBlockBlobClient('copy');
      await (await copy.beginCopyFromURL(blob.url)).pollUntilDone();
      expect((await copy.getProperties()).accessTierInferred).toBe(true);
      await (await copy.beginCopyFromURL(blob.url, { tier: 'Archive' })).pollUntilDone();
      expect(await tierOf(copy)).toEqual(online('Archive'));
      await blob.delete();
      await blob.upload('3', 1);
      expect((await blob.getProperties()).accessTierInferred).toBe(true);
    });

    it('of a copy out of the archive comes when the copy is rehydrated, and the source stays', async () => {
      const container = await running.newContainer();
      const source = container.getBlockBlobClient('source');
      await source.upload('content', 7, { tier: 'Archive' });
      const copy = container.getBlockBlobClient('copy');
      await copy.upload('old', 3);
      const options = { tier: 'Cool', rehydratePriority: 'High' } as const;
      const done = await (await copy.beginCopyFromURL(source.url, options)).pollUntilDone();
      expect(done.copyStatus).toBe('success');
      expect(await tierOf(copy)).toEqual(pendingTo('Cool', 'High'));
      await expectRefusal(copy.downloadToBuffer(), 409, 'BlobArchived');
      await running.server.clock.advance(HIGH);
      expect(await tierOf(copy)).toEqual(online('Cool'));
      expect(String(await copy.downloadToBuffer())).toBe('content');
      expect(await tierOf(source)).toEqual(online('Archive'));
      await source.delete();
      expect(String(await copy.downloadToBuffer())).toBe('content');
    });
  }, slow);

  onEngine(
    'LMDB',
    (running) => {
      const set = (path: string, headers: Record<string, string | undefined>) =>
        running.request('PUT', `${path}?comp=tier`, { headers });

      async function reach(blob: BlockBlobClient, steps: readonly TierAction[]): Promise<void> {
        await blob.upload('content', 7);
        for (const step of steps) {
          if (typeof step === 'number') await running.server.clock.advance(step * SLOWER);
          else await blob.setAccessTier(step[0], step[1] ? { rehydratePriority: step[1] } : {});
        }
      }

      it('answers as its table has it, in every state', async () => {
        const container = await running.newContainer();
        for (const [at, { title, situation, request, status, after }] of setTierCells.entries()) {
          const blob = container.getBlockBlobClient(`${at}`);
          await reach(blob, situation.steps);
          const [tier, priority] = request;
          const path = `/${container.containerName}/${at}`;
          const answer = await set(path, { 'x-ms-access-tier': tier, 'x-ms-rehydrate-priority': priority });
          const code = status === 409 ? 'BlobBeingRehydrated' : undefined;
          expect([title, answer.status, answer.headers['x-ms-error-code']]).toEqual([title, status, code]);
          expect([title, answer.headers.etag, answer.headers['last-modified']]).toEqual([title, undefined, undefined]);
          expect([title, ...(await tierOf(blob))]).toEqual([
            title,
            ...(after.pending ? pendingTo(...after.pending) : online(after.tier)),
          ]);
        }
      });

      it('decides what can be copied, as its table has it', async () => {
        const container = await running.newContainer();
        for (const [at, { title, source, tier, status, code, after }] of copyCells.entries()) {
          const from = container.getBlockBlobClient(`from-${at}`);
          await reach(from, source.steps);
          const copy = container.getBlockBlobClient(`copy-${at}`);
          const headers = { 'x-ms-copy-source': from.url, 'x-ms-access-tier': tier };
          const answer = await running.request('PUT', `/${container.containerName}/copy-${at}`, { headers });
          expect([title, answer.status, answer.headers['x-ms-error-code']]).toEqual([title, status, code]);
          if (!after) expect([title, await copy.exists()]).toEqual([title, false]);
          else {
            const wanted = after.pending ? pendingTo(...after.pending) : online(after.tier);
            expect([title, ...(await tierOf(copy))]).toEqual([title, ...wanted]);
          }
        }
      });

      it('refuses names of tiers and priorities that there are not, and blobs that do not exist', async () => {
        const { containerName, ...container } = await running.newContainer();
        const path = `/${containerName}/blob`;
        expectError(await set(path, { 'x-ms-access-tier': 'Cool' }), 404, 'BlobNotFound');
        await running.request('PUT', `${path}?comp=block&blockid=YQ==`, { body: 'x' });
        expectError(await set(path, { 'x-ms-access-tier': 'Cool' }), 404, 'BlobNotFound');
        const put = (headers: Record<string, string>) =>
          running.request('PUT', path, { headers: { 'x-ms-blob-type': 'BlockBlob', ...headers }, body: 'x' });
        expect((await put({})).status, container.url).toBe(201);
        expectError(await set(path, {}), 400, 'MissingRequiredHeader', { HeaderName: 'x-ms-access-tier' });
        for (const send of [(headers: Record<string, string>) => set(path, headers), put]) {
          expectError(await send({ 'x-ms-access-tier': 'P10' }), 400, 'InvalidBlobTier');
          const unknown = { HeaderName: 'x-ms-access-tier', HeaderValue: 'Warm' };
          expectError(await send({ 'x-ms-access-tier': 'Warm' }), 400, 'InvalidHeaderValue', unknown);
        }
        const headers = { 'x-ms-access-tier': 'Cool', 'x-ms-rehydrate-priority': 'Low' };
        expectError(await set(path, headers), 400, 'InvalidHeaderValue', { HeaderName: 'x-ms-rehydrate-priority' });
        const tags = { 'x-ms-access-tier': 'Cool', 'x-ms-if-tags': `"a" = 'b'` };
        expectError(await set(path, tags), 412, 'ConditionNotMet');
        expectError(
          await running.request('PUT', `${path}?comp=tier&snapshot=2026-11-17T00:00:00.0000000Z`, { headers: tags }),
          404,
          'BlobNotFound',
        );
      });

      it('is answered by Get Blob from the version on that has it', async () => {
        const container = await running.newContainer();
        await container.getBlockBlobClient('blob').upload('x', 1, { tier: 'Cool' });
        const get = async (version: string) => {
          const headers = { 'x-ms-version': version };
          return (await running.request('GET', `/${container.containerName}/blob`, { headers })).headers;
        };
        expect((await get('2026-06-06'))['x-ms-access-tier']).toBeUndefined();
        expect((await get('2026-10-06'))['x-ms-access-tier']).toBe('Cool');
      });

      it('leaves a store in which check finds nothing', async () => {
        const container = await running.newContainer();
        const blob = container.getBlockBlobClient('blob');
        await blob.upload('x', 1, { tier: 'Archive' });
        await blob.setAccessTier('Hot');
        expect((await check(running.where)).findings).toEqual([]);
      });
    },
    slow,
  );

  it('survives a restart, and so does a rehydration, which takes as long as --rehydration says', async () => {
    const location = newFolder();
    const options = { location, blobPort: 0, testClock: true, rehydrationSeconds: 3_600 };
    const first = await start(options);
    const container = clientOf(first.blobUrl).getContainerClient('box');
    await container.create();
    const { etag } = await container.getBlockBlobClient('blob').upload('content', 7, { tier: 'Archive' });
    await container.getBlockBlobClient('blob').setAccessTier('Cold');
    await first.clock.advance(3_000);
    await first.stop();
    const second = await start({ ...options, rehydrationSeconds: 0 });
    try {
      const blob = clientOf(second.blobUrl).getContainerClient('box').getBlockBlobClient('blob');
      expect(await tierOf(blob)).toEqual(pendingTo('Cold'));
      await second.clock.advance(600);
      expect(await tierOf(blob)).toEqual(online('Cold'));
      expect((await blob.getProperties()).etag).toBe(etag);
      await blob.setAccessTier('Archive');
      expect((await blob.setAccessTier('Hot'))._response.status).toBe(202);
      expect(await tierOf(blob)).toEqual(online('Hot'));
    } finally {
      await second.stop();
    }
  });
});
