import { BlobSASPermissions } from '@azure/storage-blob';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expectError, listXml, onEveryEngine, onLmdb, type Running } from '../support/test-server.ts';

const HEADERS = { 'x-ms-blob-type': 'BlockBlob' };

describe('The name of a blob', () => {
  onEveryEngine((running) => {
    it.each([
      ['one unit', 'x'],
      ['1,024 letters', 'x'.repeat(1_024)],
      ['1,024 units of three bytes each', '\u20ac'.repeat(1_024)],
      ['512 emoji', '\u{1F600}'.repeat(512)],
      ['slashes in a row', 'a//b///c'],
      ['a slash at the end', 'folder/'],
      ['a dot at the end', 'name.'],
      ['an encoded slash, kept as text', 'a%2Fb'],
      ['plus, blanks and percent', 'a+b c%d%20e'],
      ['what queries and fragments begin with', 'a?b#c&d=e'],
      ['quotes and XML', `"<&>'`],
      ['a letter and its accent, not composed', 'e\u0301 \u00e9'],
    ])('may be %s', async (_, name) => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient(name);
      await blob.upload(name, Buffer.byteLength(name));
      expect((await blob.downloadToBuffer()).toString()).toBe(name);
      const found = [];
      for await (const item of container.listBlobsFlat()) found.push(item.name);
      expect(found).toEqual([name]);
      await blob.delete();
    });

    it('may be any text, even control characters and only dots', async () => {
      const container = await running.newContainer();
      const text = fc.oneof(
        fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
        fc.constantFrom('.', '..', '../x', './', '\u0000', '\u0001\u001f\u007f', '\ufffe\uffff', '\ufeff'),
      );
      await fc.assert(
        fc.asyncProperty(text, async (sent) => {
          const name = sent.replaceAll('\\', '/');
          expect((await put(running, container.containerName, name, name)).status).toBe(201);
          const path = `/${container.containerName}/${encodeURIComponent(name)}`;
          expect((await running.request('GET', path)).text).toBe(name);
          const prefix = encodeURIComponent(name);
          const xml = await listXml(running, container.containerName, `&prefix=${prefix}`);
          expect(namesIn(xml)).toContain(name);
          expect((await running.request('DELETE', path)).status).toBe(202);
        }),
        { numRuns: 30 },
      );
    });
  });

  onLmdb((running) => {
    it('has at most 1,024 UTF-16 units', async () => {
      const { containerName } = await running.newContainer();
      for (const name of ['x'.repeat(1_025), `${'\u{1F600}'.repeat(512)}x`]) {
        expectError(await put(running, containerName, name, ''), 400, 'OutOfRangeInput');
        const path = `/${containerName}/${encodeURIComponent(name)}`;
        expectError(await running.request('GET', path), 400, 'OutOfRangeInput');
        expectError(await running.request('DELETE', path), 400, 'OutOfRangeInput');
      }
    });

    it('has slashes where it was sent with backslashes', async () => {
      const container = await running.newContainer();
      const { containerName } = container;
      const blob = container.getBlockBlobClient('a\\b\\c');
      await blob.upload('bytes', 5);
      const found = [];
      for await (const item of container.listBlobsFlat()) found.push(item.name);
      expect(found).toEqual(['a/b/c']);
      for (const path of ['a/b/c', 'a%5Cb%5cc', 'a\\b%2Fc', 'a%2Fb\\c']) {
        expect((await running.request('GET', `/${containerName}/${path}`)).text, path).toBe('bytes');
      }
      expect((await running.request('GET', `/${containerName}/a%255Cb/c`)).status).toBe(404);
      expect(namesIn(await listXml(running, containerName, '&prefix=a%5Cb%5C'))).toEqual(['a/b/c']);
      const hierarchy = [];
      for await (const item of container.listBlobsByHierarchy('/', { prefix: 'a\\' })) hierarchy.push(item.name);
      expect(hierarchy).toEqual(['a/b/']);

      const url = await blob.generateSasUrl({ permissions: BlobSASPermissions.parse('r'), expiresOn: inAnHour() });
      expect(await (await fetch(url)).text()).toBe('bytes');
      const copied = container.getBlobClient('copy\\of it');
      await (await copied.beginCopyFromURL(url)).pollUntilDone();
      await (await copied.beginCopyFromURL(blob.url)).pollUntilDone();
      expect((await container.getBlobClient('copy/of it').downloadToBuffer()).toString()).toBe('bytes');
      await blob.delete();
      expect(await container.getBlobClient('a/b/c').exists()).toBe(false);
    });

    it('has at most 254 segments', async () => {
      const { containerName } = await running.newContainer();
      const segments = (count: number) => Array.from({ length: count }, (_, at) => at % 10).join('/');
      expect((await put(running, containerName, segments(254), 'x')).status).toBe(201);
      expect((await put(running, containerName, `${'/'.repeat(253)}x`, 'x')).status).toBe(201);
      for (const name of [segments(255), `${'/'.repeat(254)}x`, segments(254).concat('/'), '\\'.repeat(254)]) {
        expectError(await put(running, containerName, name, 'x'), 400, 'InvalidUri');
        const path = `/${containerName}/${encodeURIComponent(name)}`;
        expectError(await running.request('GET', path), 400, 'InvalidUri');
        expectError(await running.request('DELETE', path), 400, 'InvalidUri');
      }
    });

    it('differs by case, by accents and by every slash', async () => {
      const container = await running.newContainer();
      const names = ['a/b', 'a//b', 'A/b', 'a/b/', 'a%2Fb', '\u00e9', 'e\u0301'];
      for (const name of names) await put(running, container.containerName, name, name);
      for (const name of names) {
        const answer = await running.request('GET', `/${container.containerName}/${encodeURIComponent(name)}`);
        expect(answer.text).toBe(name);
      }
    });

    it('is the same whether slashes are encoded or not, and a plus is a plus', async () => {
      const { containerName } = await running.newContainer();
      await put(running, containerName, 'a/b+c', 'x');
      expect((await running.request('GET', `/${containerName}/a/b+c`)).text).toBe('x');
      expect((await running.request('GET', `/${containerName}/a%2Fb%2Bc`)).text).toBe('x');
      expect((await running.request('GET', `/${containerName}/a/b%20c`)).status).toBe(404);
    });

    it('is refused when it is no UTF-8', async () => {
      const { containerName } = await running.newContainer();
      for (const name of ['%ff', '%', '%zz', '%ed%a0%80']) {
        const answer = await running.request('PUT', `/${containerName}/${name}`, { headers: HEADERS, body: '' });
        expectError(answer, 400, 'InvalidUri');
      }
    });
  });
});

const inAnHour = (): Date => new Date(Date.now() + 3_600_000);

function put(running: Running, container: string, name: string, body: string) {
  return running.request('PUT', `/${container}/${encodeURIComponent(name)}`, { headers: HEADERS, body });
}

function namesIn(xml: string): string[] {
  return [...xml.matchAll(/<Name( Encoded="true")?>([^<]*)<\/Name>/g)].map(([, encoded, text = '']) =>
    encoded ? decodeURIComponent(text) : unescapeXml(text),
  );
}

function unescapeXml(text: string): string {
  return text
    .replace(/&#x([0-9A-Fa-f]+);/g, (_, hex) => String.fromCodePoint(Number.parseInt(hex, 16)))
    .replace(/&#(\d+);/g, (_, digits) => String.fromCodePoint(Number(digits)))
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&apos;', "'")
    .replaceAll('&amp;', '&');
}
