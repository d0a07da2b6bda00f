import type { FilterBlobItem } from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { expectError, expectRefusal, onEveryEngine, onLmdb } from '../support/test-server.ts';

async function namesOf(items: AsyncIterable<FilterBlobItem>): Promise<string[]> {
  const names: string[] = [];
  for await (const { containerName, name } of items) names.push(`${containerName}/${name}`);
  return names;
}

describe('Find Blobs by Tags and Find Blobs by Tags in Container', () => {
  onEveryEngine((running) => {
    it('finds blobs in all containers by tags that are all true, and answers with those tags', async () => {
      const [one, other] = [await running.newContainer(), await running.newContainer()];
      const key = `key-${one.containerName}`;
      await one.getBlockBlobClient('b').upload('x', 1, { tags: { [key]: '1', second: 'x', third: 'y' } });
      await one.getBlockBlobClient('a').upload('x', 1, { tags: { [key]: '1', second: 'z' } });
      await one.getBlockBlobClient('none').upload('x', 1, { tags: { second: 'x' } });
      await other.getBlockBlobClient('c').upload('x', 1, { tags: { [key]: '2', second: 'x' } });
      const find = (where: string) => namesOf(running.service.findBlobsByTags(where));
      const all = [`${one.containerName}/a`, `${one.containerName}/b`, `${other.containerName}/c`].sort();
      expect((await find(`"${key}" >= '1'`)).sort()).toEqual(all);
      expect(await find(`"${key}" = '1'`)).toEqual([`${one.containerName}/a`, `${one.containerName}/b`]);
      expect(await find(`"${key}" > '1'`)).toEqual([`${other.containerName}/c`]);
      expect(await find(`"${key}" = '1' AND second = 'x'`)).toEqual([`${one.containerName}/b`]);
      expect(await find(`second > 'x' AND "${key}" < '2'`)).toEqual([`${one.containerName}/a`]);
      expect(await find(`@container = '${other.containerName}' AND "${key}" > ''`)).toEqual([
        `${other.containerName}/c`,
      ]);
      expect(await find(`@container = 'missing' AND "${key}" > ''`)).toEqual([]);
      for await (const item of running.service.findBlobsByTags(`"${key}" = '1' AND second = 'x'`))
        expect(item.tags).toEqual({ [key]: '1', second: 'x' });
    });

    it('follows every change of the tags at once', async () => {
      const container = await running.newContainer();
      const key = `key-${container.containerName}`;
      const find = (value: string) => namesOf(running.service.findBlobsByTags(`"${key}" = '${value}'`));
      const blob = container.getBlockBlobClient('blob');
      const path = `${container.containerName}/blob`;
      await blob.upload('x', 1, { tags: { [key]: '1' } });
      expect(await find('1')).toEqual([path]);
      await blob.setTags({ [key]: '2' });
      expect([await find('1'), await find('2')]).toEqual([[], [path]]);
      await blob.upload('y', 1);
      expect(await find('2')).toEqual([]);
      await blob.stageBlock('MDE=', 'y', 1);
      await blob.commitBlockList(['MDE='], { tags: { [key]: '3' } });
      expect(await find('3')).toEqual([path]);
      const copy = container.getBlockBlobClient('copy');
      await (await copy.beginCopyFromURL(blob.url, { tags: { [key]: '3' } })).pollUntilDone();
      expect(await find('3')).toEqual([path, `${container.containerName}/copy`]);
      await blob.delete();
      expect(await find('3')).toEqual([`${container.containerName}/copy`]);
      await container.delete();
      expect(await find('3')).toEqual([]);
      await container.create();
      expect(await find('3')).toEqual([]);
    });

    it('answers in pages', async () => {
      const container = await running.newContainer();
      const names = Array.from({ length: 7 }, (_, at) => `blob${at}`);
      for (const [at, name] of names.entries())
        await container
          .getBlockBlobClient(name)
          .upload('x', 1, { tags: { even: String(at % 2), number: `${9 - at}` } });
      for (const [where, expected] of [
        [`even = '0'`, ['blob0', 'blob2', 'blob4', 'blob6']],
        [`number > ''`, [...names].reverse()],
        [`number > '3' AND even <= '0'`, ['blob4', 'blob2', 'blob0']],
      ] as const) {
        for (const maxPageSize of [1, 2, 3, 100]) {
          const found: string[] = [];
          for await (const page of container.findBlobsByTags(where).byPage({ maxPageSize })) {
            expect(page.blobs.length).toBeLessThanOrEqual(maxPageSize);
            found.push(...page.blobs.map(({ name }) => name));
          }
          expect(found).toEqual(expected);
        }
      }
    });
  });

  onLmdb((running) => {
    it('refuses what is no query', async () => {
      const where = (text: string) => `/?comp=blobs&where=${encodeURIComponent(text)}`;
      expectError(await running.request('GET', '/?comp=blobs'), 400, 'MissingRequiredQueryParameter');
      for (const text of ['', 'a', `a <> 'b'`, `a = 'b' OR a = 'c'`, `@container = 'c'`]) {
        expectError(await running.request('GET', where(text)), 400, 'InvalidQueryParameterValue');
      }
      const query = where(`a = 'b'`);
      expectError(await running.request('GET', `${query}&marker=x`), 400, 'InvalidQueryParameterValue');
      expectError(await running.request('GET', `${query}&maxresults=0`), 400, 'OutOfRangeQueryParameterValue');
      await expectRefusal(
        running.service.getContainerClient('missing').findBlobsByTags(`a = 'b'`).next(),
        404,
        'ContainerNotFound',
      );
    });

    it('answers as Azure does', async () => {
      const container = await running.newContainer();
      await container.getBlockBlobClient('a&b').upload('x', 1, { tags: { a: 'b' } });
      const { containerName } = container;
      const query = `restype=container&comp=blobs&maxresults=5&where=${encodeURIComponent(`a='b'`)}`;
      const { text } = await running.request('GET', `/${containerName}?${query}`);
      expect(text).toContain(
        '<Where>a=&apos;b&apos;</Where><MaxResults>5</MaxResults><Blobs><Blob><Name>a&amp;b</Name>' +
          `<ContainerName>${containerName}</ContainerName><Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags></Blob>` +
          '</Blobs><NextMarker',
      );
    });
  });
});
