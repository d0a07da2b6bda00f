import { type ContainerClient, type ContainerListBlobsOptions, ContainerSASPermissions } from '@azure/storage-blob';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  elementOf,
  expectError,
  expectRefusal,
  fill,
  listXml,
  onEveryDisk,
  onEveryEngine,
  onLmdb,
  type Running,
} from '../support/test-server.ts';

const ALPHABET = ['a', 'b', '/', '//', '.', ' ', '+', '%2F', '~', 'é', '\u{1F600}', '\uFFFD', 'Z', '0'];
const names = fc.uniqueArray(
  fc.array(fc.constantFrom(...ALPHABET), { minLength: 1, maxLength: 5 }).map((parts) => parts.join('')),
  { minLength: 1, maxLength: 14 },
);

describe('List Blobs', () => {
  onEveryEngine((running) => {
    it('lists any names in UTF-16 order, flat and by hierarchy, page by page', async () => {
      await fc.assert(
        fc.asyncProperty(
          names,
          fc.constantFrom('', 'a', '/', 'a/', '\u{1F600}', 'b//'),
          fc.constantFrom('/', '//', 'a', '%2F', '/a', '\u{1F600}'),
          fc.integer({ min: 1, max: 6 }),
          async (all, prefix, delimiter, maxPageSize) => {
            const container = await running.newContainer();
            await Promise.all(all.map((name) => put(running, container, name)));
            expect(await flat(container, prefix, maxPageSize)).toEqual(expectedFlat(all, prefix));
            const found = await byHierarchy(container, delimiter, prefix, maxPageSize);
            expect(found).toEqual(expectedByHierarchy(all, prefix, delimiter));
          },
        ),
        { numRuns: 12 },
      );
    });

    it('merges blobs of uncommitted blocks into their places when asked for them', async () => {
      await fc.assert(
        fc.asyncProperty(
          names,
          fc.constantFrom('', 'a', '/'),
          fc.constantFrom('/', 'a', '\u{1F600}'),
          fc.integer({ min: 1, max: 6 }),
          async (all, prefix, delimiter, maxPageSize) => {
            const container = await running.newContainer();
            const uncommitted = (at: number) => at % 3 !== 0;
            for (const [at, name] of all.entries()) {
              if (!uncommitted(at)) await put(running, container, name);
              // Some have both, and are listed once.
              if (uncommitted(at) || at % 6 === 0) await stage(running, container, name);
            }
            const include = { includeUncommitedBlobs: true };
            expect(await flat(container, prefix, maxPageSize, include)).toEqual(expectedFlat(all, prefix));
            const found = await byHierarchy(container, delimiter, prefix, maxPageSize, include);
            expect(found).toEqual(expectedByHierarchy(all, prefix, delimiter));
            const committed = all.filter((_, at) => !uncommitted(at));
            expect(await flat(container, prefix, maxPageSize)).toEqual(expectedFlat(committed, prefix));
          },
        ),
        { numRuns: 12 },
      );
    });

    it('begins at startFrom, flat and by hierarchy, page by page, with any prefix', async () => {
      await fc.assert(
        fc.asyncProperty(
          names,
          fc.constantFrom('', 'a', '/', 'a/', '\u{1F600}'),
          fc.constantFrom('/', '//', 'a', '\u{1F600}'),
          // The client cannot sign an empty one.
          fc.array(fc.constantFrom(...ALPHABET), { minLength: 1, maxLength: 4 }).map((parts) => parts.join('')),
          fc.integer({ min: 1, max: 6 }),
          async (all, prefix, delimiter, startFrom, maxPageSize) => {
            const container = await running.newContainer();
            await Promise.all(all.map((name) => put(running, container, name)));
            const later = all.filter((name) => name >= startFrom);
            const options = { startFrom };
            expect(await flat(container, prefix, maxPageSize, options)).toEqual(expectedFlat(later, prefix));
            const found = await byHierarchy(container, delimiter, prefix, maxPageSize, options);
            expect(found).toEqual(expectedByHierarchy(later, prefix, delimiter));
          },
        ),
        { numRuns: 12 },
      );
    });

    it('begins with the blob that startFrom names, or the next one, and with the common prefix that it lies in', async () => {
      const container = await running.newContainer();
      for (const name of ['a/1', 'a/2', 'b/1', 'b/2', 'c']) await put(running, container, name);
      expect(await flat(container, '', 2, { startFrom: 'a/2' })).toEqual(['a/2', 'b/1', 'b/2', 'c']);
      expect(await flat(container, '', 2, { startFrom: 'a/3' })).toEqual(['b/1', 'b/2', 'c']);
      expect(await flat(container, 'b/', 2, { startFrom: 'a/2' })).toEqual(['b/1', 'b/2']);
      expect(await flat(container, 'a/', 2, { startFrom: 'b/1' })).toEqual([]);
      expect(await flat(container, '', 2, { startFrom: 'z'.repeat(2_000) })).toEqual([]);
      expect(await flat(container, '', 5, { startFrom: 'b\\2' })).toEqual(['b/2', 'c']);
      const folders = ['prefix b/', 'c'];
      for (const startFrom of ['b', 'b/', 'b/2']) {
        expect(await byHierarchy(container, '/', '', 1, { startFrom })).toEqual(folders);
      }
      expect(await byHierarchy(container, '/', '', 1, { startFrom: 'b/3' })).toEqual(['c']);
      expect(await listXml(running, container.containerName, '&startFrom=')).toContain('<Name>a/1</Name>');
    });

    it('merges them over many slices', async () => {
      const container = await running.newContainer();
      const all = Array.from({ length: 600 }, (_, at) => `${at < 300 ? 'a' : 'z'}${String(at).padStart(3, '0')}`);
      await fill(running, container, 300, (at) => all[at]!);
      for (let from = 300; from < 600; from += 50) {
        await Promise.all(all.slice(from, from + 50).map((name) => stage(running, container, name)));
      }
      const include = { includeUncommitedBlobs: true };
      expect(await flat(container, '', 5_000, include)).toEqual(all);
      expect(await flat(container, '', 299, include)).toEqual(all);
      expect(await byHierarchy(container, '2', '', 5_000, include)).toEqual(expectedByHierarchy(all, '', '2'));
    });

    it('shows of uncommitted blocks no more than their name and lease', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.stageBlock('AAAA', 'Hello', 5);
      await blob.getBlobLeaseClient().acquireLease(-1);
      expect(await listXml(running, container.containerName, '&include=uncommittedblobs,metadata')).toContain(
        '<Blobs><Blob><Name>blob</Name><Properties><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType>' +
          '<AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred><LeaseStatus>locked</LeaseStatus>' +
          '<LeaseState>leased</LeaseState><LeaseDuration>infinite</LeaseDuration>' +
          '<ServerEncrypted>false</ServerEncrypted></Properties></Blob></Blobs>',
      );
    });

    it('gives the properties, and metadata only when asked for it', async () => {
      const container = await running.newContainer();
      const { etag, lastModified } = (
        await container.uploadBlockBlob('blob', 'Hello World', 11, {
          metadata: { Key: 'a<b&c' },
          blobHTTPHeaders: { blobContentType: 'text/plain', blobCacheControl: 'no-cache' },
        })
      ).response;
      const plain = (await container.listBlobsFlat().next()).value;
      expect(plain).toMatchObject({
        name: 'blob',
        properties: {
          etag: etag!.replaceAll('"', ''),
          lastModified,
          createdOn: lastModified,
          contentLength: 11,
          contentType: 'text/plain',
          cacheControl: 'no-cache',
          blobType: 'BlockBlob',
          accessTier: 'Hot',
          accessTierInferred: true,
          leaseState: 'available',
          leaseStatus: 'unlocked',
          serverEncrypted: true,
        },
      });
      expect(Buffer.from(plain.properties.contentMD5).toString('base64')).toBe('sQqNsWTgdUEFt6mb5y4/5Q==');
      expect(plain.metadata).toBeUndefined();
      expect((await container.listBlobsFlat({ includeMetadata: true }).next()).value.metadata).toEqual({
        Key: 'a<b&c',
      });
    });

    it('continues after blobs that were deleted or created between two pages', async () => {
      const container = await running.newContainer();
      for (const name of ['a', 'b/1', 'b/2', 'c', 'd']) await put(running, container, name);
      const pages = container.listBlobsByHierarchy('/').byPage({ maxPageSize: 2 });
      const first = (await pages.next()).value.segment;
      expect(first.blobItems.map(({ name }: { name: string }) => name)).toEqual(['a']);
      expect(first.blobPrefixes.map(({ name }: { name: string }) => name)).toEqual(['b/']);
      await container.deleteBlob('b/1');
      await container.deleteBlob('b/2');
      await container.deleteBlob('c');
      await put(running, container, 'a0');
      await put(running, container, 'b/3');
      await put(running, container, 'cc');
      const second = (await pages.next()).value.segment;
      expect(second.blobItems.map(({ name }: { name: string }) => name)).toEqual(['cc', 'd']);
    });

    it('seeks past the many blobs of one prefix', async () => {
      const container = await running.newContainer();
      for (const folder of ['a', 'b']) await fill(running, container, 600, (at) => `${folder}/${at}`);
      for (const name of ['a', 'a0', 'c']) await put(running, container, name);
      for (const maxPageSize of [1, 2, 5]) {
        const found = await byHierarchy(container, '/', '', maxPageSize);
        expect(found).toEqual(['a', 'prefix a/', 'a0', 'prefix b/', 'c']);
      }
      expect(await byHierarchy(container, '1', 'a/59', 3)).toEqual(expectedUnder('a/59', '1'));
    });

    it('reports a missing container', async () => {
      const nowhere = running.service.getContainerClient('not-there');
      await expectRefusal(nowhere.listBlobsFlat().next(), 404, 'ContainerNotFound');
    });
  });

  onEveryDisk(
    (running) => {
      it('pages through 12,000 blobs, 5,000 at a time', async () => {
        const container = await running.newContainer();
        await fill(running, container, 12_000, (at) => `blob-${String(at).padStart(5, '0')}`);
        const all = Array.from({ length: 12_000 }, (_, at) => `blob-${String(at).padStart(5, '0')}`);
        const sizes: number[] = [];
        const found: string[] = [];
        for await (const { segment } of container.listBlobsFlat().byPage()) {
          sizes.push(segment.blobItems.length);
          found.push(...segment.blobItems.map(({ name }) => name));
        }
        expect(sizes).toEqual([5_000, 5_000, 2_000]);
        expect(found).toEqual(all);
        expect(await flat(container, 'blob-119', 33)).toEqual(all.slice(11_900));
        expect(await flat(container, '', 1_500, { startFrom: 'blob-06789' })).toEqual(all.slice(6_789));
        expect(await byHierarchy(container, '7', 'blob-', 90, { startFrom: 'blob-06789' })).toEqual(
          expectedByHierarchy(all.slice(6_789), 'blob-', '7'),
        );
      }, 120_000);
    },
    { heavy: true },
  );

  onLmdb((running) => {
    it('answers as the service does, and echoes what was asked', async () => {
      const container = await running.newContainer();
      for (const name of ['x/1', 'x/2', 'y']) await put(running, container, name);
      const xml = await listXml(
        running,
        container.containerName,
        '&prefix=x&delimiter=%2F&maxresults=1&include=metadata',
      );
      expect(xml).toMatch(/^\ufeff<\?xml version="1\.0" encoding="utf-8"\?><EnumerationResults ServiceEndpoint="http/);
      expect(xml).toContain(` ContainerName="${container.containerName}"><Prefix>x</Prefix><MaxResults>1</MaxResults>`);
      expect(xml).toContain('<Delimiter>/</Delimiter><Blobs><BlobPrefix><Name>x/</Name></BlobPrefix></Blobs>');
      expect(xml).toContain('<NextMarker />');
      const blob = await listXml(running, container.containerName, '&prefix=y');
      expect(blob).toContain('<Name>y</Name><Properties><Creation-Time>');
      expect(elementOf(blob, 'Etag')).toMatch(/^0x[0-9A-F]+$/);
      expect(blob).toContain('<OrMetadata /></Blob>');
    });

    it('begins the next page at its own marker, also with another prefix', async () => {
      const container = await running.newContainer();
      for (const name of ['a', 'b', 'c', 'd']) await put(running, container, name);
      const first = await listXml(running, container.containerName, '&maxresults=2');
      const marker = encodeURIComponent(elementOf(first, 'NextMarker')!);
      expect(elementOf(await listXml(running, container.containerName, `&marker=${marker}`), 'Name')).toBe('c');
      expect(elementOf(await listXml(running, container.containerName, `&marker=${marker}&prefix=d`), 'Name')).toBe(
        'd',
      );
      expect(await listXml(running, container.containerName, `&marker=${marker}&prefix=a`)).toContain(
        '<Blobs></Blobs>',
      );
    });

    it('shows nothing of features that the account does not have', async () => {
      const container = await running.newContainer();
      await put(running, container, 'blob');
      const plain = await listXml(running, container.containerName);
      for (const value of [
        ...['snapshots', 'deleted', 'versions', 'deletedwithversions', 'tags'],
        ...['immutabilitypolicy', 'legalhold', 'snapshots,deleted,versions,tags'],
      ]) {
        expect(await listXml(running, container.containerName, `&include=${value}`)).toBe(plain);
      }
    });

    it('answers in XML when asked for Arrow, which is how a client learns that there is none', async () => {
      const { containerName } = await running.newContainer();
      const answer = await running.request('GET', `/${containerName}?restype=container&comp=list`, {
        headers: { Accept: 'application/vnd.apache.arrow.stream,application/xml' },
      });
      expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/xml']);
    });

    it('begins at startFrom for the holder of a signature and for anonymous callers', async () => {
      const container = await running.newContainer();
      for (const name of ['a', 'b', 'c']) await put(running, container, name);
      await container.setAccessPolicy('container');
      const permissions = ContainerSASPermissions.parse('l');
      const url = await container.generateSasUrl({ permissions, expiresOn: new Date(Date.now() + 3_600_000) });
      for (const signature of ['', `&${new URL(url).search.slice(1)}`]) {
        const path = `/${container.containerName}?restype=container&comp=list&startFrom=b${signature}`;
        const { text } = await running.request('GET', path, { unsigned: true });
        expect([...text.matchAll(/<Name>(.*?)<\/Name>/g)].map(([, name]) => name)).toEqual(['b', 'c']);
      }
    });

    it('refuses parameters that make no sense', async () => {
      const { containerName } = await running.newContainer();
      const list = (query: string) => running.request('GET', `/${containerName}?restype=container&comp=list&${query}`);
      expectError(await list('maxresults=0'), 400, 'OutOfRangeQueryParameterValue', {
        QueryParameterName: 'maxresults',
        QueryParameterValue: '0',
        MinimumAllowed: '1',
      });
      expectError(await list('maxresults=-1'), 400, 'OutOfRangeQueryParameterValue');
      expectError(await list('maxresults=1.5'), 400, 'InvalidQueryParameterValue');
      for (const marker of ['nowhere', '1-after-!', '2-after-YQ', `1-after-${'A'.repeat(20_000)}`]) {
        const answer = await list(`marker=${marker}`);
        expectError(answer, 400, 'InvalidQueryParameterValue', { QueryParameterName: 'marker' });
      }
      expectError(await list('include=metadata,everything'), 400, 'InvalidQueryParameterValue');
      expectError(await list('include=permissions'), 400, 'InvalidQueryParameterValue');
      expectError(await list('endBefore=a'), 400, 'OperationNotSupportedWithFeatureMissing');
    });

    it('finds nothing under a prefix that no name can have', async () => {
      const { containerName } = await running.newContainer();
      for (const length of [1_024, 1_025, 8_000]) {
        const xml = await listXml(
          running,
          containerName,
          `&prefix=${'a'.repeat(length)}&delimiter=${'b'.repeat(length)}`,
        );
        expect(xml).toContain('<Blobs></Blobs><NextMarker />');
      }
    });

    it('encodes what XML cannot carry', async () => {
      const container = await running.newContainer();
      await put(running, container, 'dir1/dir2/file\uffff.blob');
      await put(running, container, 'dir1/\u0001/x');
      const xml = await listXml(running, container.containerName);
      expect(xml).toContain('<Name Encoded="true">dir1%2Fdir2%2Ffile%EF%BF%BF.blob</Name>');
      expect(xml).toContain('<Name Encoded="true">dir1%2F%01%2Fx</Name>');
      expect(await flat(container, '', 10)).toEqual(['dir1/\u0001/x', 'dir1/dir2/file\uffff.blob']);
      const folders = await listXml(running, container.containerName, '&prefix=dir1%2F&delimiter=%2F');
      expect(folders).toContain('<BlobPrefix><Name Encoded="true">dir1%2F%01%2F</Name></BlobPrefix>');
    });

    it('echoes a prefix, delimiter or marker that XML cannot carry without breaking the document', async () => {
      const { containerName } = await running.newContainer();
      const xml = await listXml(running, containerName, '&prefix=%01%3C&delimiter=%00%EF%BF%BF');
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
      expect(xml).not.toMatch(/[\u0000-\u0008\uffff]/);
    });
  });
});

async function put(running: Running, container: ContainerClient, name: string): Promise<void> {
  const answer = await running.request('PUT', `/${container.containerName}/${encodeURIComponent(name)}`, {
    headers: { 'x-ms-blob-type': 'BlockBlob' },
    body: '',
  });
  expect(answer.status).toBe(201);
}

async function stage(running: Running, { containerName }: ContainerClient, name: string): Promise<void> {
  const path = `/${containerName}/${encodeURIComponent(name)}?comp=block&blockid=AAAA`;
  expect((await running.request('PUT', path, { body: 'x' })).status).toBe(201);
}

async function flat(
  container: ContainerClient,
  prefix: string,
  maxPageSize: number,
  include: ContainerListBlobsOptions = {},
): Promise<string[]> {
  const found: string[] = [];
  for await (const { segment } of container.listBlobsFlat({ prefix, ...include }).byPage({ maxPageSize })) {
    expect(segment.blobItems.length).toBeLessThanOrEqual(maxPageSize);
    found.push(...segment.blobItems.map(({ name }) => name));
  }
  return found;
}

async function byHierarchy(
  container: ContainerClient,
  delimiter: string,
  prefix: string,
  maxPageSize: number,
  include: ContainerListBlobsOptions = {},
) {
  const found: string[] = [];
  const pages = container.listBlobsByHierarchy(delimiter, { prefix, ...include }).byPage({ maxPageSize });
  for await (const { segment } of pages) {
    const folders = segment.blobPrefixes ?? [];
    expect(segment.blobItems.length + folders.length).toBeLessThanOrEqual(maxPageSize);
    const page = [...segment.blobItems.map(({ name }) => ({ name, text: name }))];
    page.push(...folders.map(({ name }) => ({ name, text: `prefix ${name}` })));
    // The client keeps blobs and prefixes apart; on the wire they come in the order of their names.
    found.push(...page.sort((one, other) => (one.name < other.name ? -1 : 1)).map(({ text }) => text));
  }
  return found;
}

/** JavaScript compares strings by UTF-16 units, as the service does. */
function expectedFlat(all: readonly string[], prefix: string): string[] {
  return all.filter((name) => name.startsWith(prefix)).sort((one, other) => (one < other ? -1 : 1));
}

function expectedByHierarchy(all: readonly string[], prefix: string, delimiter: string): string[] {
  const found = new Set<string>();
  for (const name of expectedFlat(all, prefix)) {
    const end = name.indexOf(delimiter, prefix.length);
    found.add(end < 0 ? name : `prefix ${name.slice(0, end + delimiter.length)}`);
  }
  return [...found];
}

function expectedUnder(prefix: string, delimiter: string): string[] {
  return expectedByHierarchy(
    Array.from({ length: 600 }, (_, at) => `a/${at}`),
    prefix,
    delimiter,
  );
}
