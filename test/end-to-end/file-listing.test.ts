/** List Directories and Files. */
import { describe, expect, it } from 'vitest';
import { elementOf, expectError, expectRefusal, onEveryEngine } from '../support/test-server.ts';

onEveryEngine((running) => {
  const newListed = async (...names: string[]) => {
    const share = await running.newShare();
    const root = share.rootDirectoryClient;
    for (const name of names) {
      if (name.endsWith('/')) await share.getDirectoryClient(name.slice(0, -1)).create();
      else await root.getFileClient(name).create(name.length);
    }
    const list = (query: string, headers = {}) =>
      running.request('GET', `/${share.name}?restype=directory&comp=list${query}`, { of: 'file', headers });
    return { share, root, list };
  };

  describe('List Directories and Files', () => {
    it('is in the order of names without their case, one level only', async () => {
      const { share, list } = await newListed('b', 'C/', 'a', 'D', 'É', 'e');
      await share.getDirectoryClient('C').getFileClient('below').create(0);
      const { text } = await list('');
      const found = [...text.matchAll(/<(File|Directory)><Name>(.*?)<\/Name>/g)].map(([, kind, name]) => [kind, name]);
      expect(found).toEqual([
        ['File', 'a'],
        ['File', 'b'],
        ['Directory', 'C'],
        ['File', 'D'],
        ['File', 'e'],
        ['File', 'É'],
      ]);
    });

    it('has pages of any size, each with what follows the one before', async () => {
      const names = Array.from({ length: 23 }, (_, i) => `n${String(i).padStart(2, '0')}`);
      const { root } = await newListed(...names, 'other');
      const pages: string[][] = [];
      for await (const page of root.listFilesAndDirectories({ prefix: 'N' }).byPage({ maxPageSize: 10 }))
        pages.push(page.segment.fileItems.map(({ name }) => name));
      expect(pages.map((page) => page.length)).toEqual([10, 10, 3]);
      expect(pages.flat()).toEqual(names);
    });

    it('has what is included, and ids with extended info', async () => {
      const { root } = await newListed('f', 'd/');
      const { fileId, etag } = await root.getFileClient('f').getProperties();
      const plain = await root.listFilesAndDirectories().byPage().next();
      expect(plain.value.segment.fileItems[0].properties).toEqual({ contentLength: 1 });
      const options = {
        includeTimestamps: true,
        includeEtag: true,
        includeAttributes: true,
        includePermissionKey: true,
      };
      const { value } = await root.listFilesAndDirectories(options).byPage().next();
      const [file] = value.segment.fileItems;
      expect(file).toMatchObject({ fileId, attributes: 'Archive', properties: { contentLength: 1, etag } });
      expect(file.permissionKey).toBe((await root.getFileClient('f').getProperties()).filePermissionKey);
      expect(file.properties.lastWriteTime).toBeInstanceOf(Date);
      expect(value.segment.directoryItems[0]).toMatchObject({ name: 'd', attributes: 'Directory' });
      expect(value.directoryId).toBe('0');
      const extended = await root.listFilesAndDirectories({ includeExtendedInfo: true }).byPage().next();
      expect(extended.value.segment.fileItems[0]).toMatchObject({ fileId, properties: { contentLength: 1 } });
    });

    it('repeats the parameters of the request', async () => {
      const { share, list } = await newListed('ab', 'ac', 'ad');
      const { status, text } = await list('&prefix=a&maxresults=2');
      expect(status).toBe(200);
      expect(text).toContain(`ShareName="${share.name}" DirectoryPath="">`);
      expect([elementOf(text, 'Prefix'), elementOf(text, 'MaxResults')]).toEqual(['a', '2']);
      const marker = elementOf(text, 'NextMarker')!;
      const next = await list(`&prefix=a&marker=${encodeURIComponent(marker)}`);
      expect(next.text).toContain('<Name>ad</Name>');
      expect(next.text).not.toContain('<Name>ac</Name>');
    });

    it('encodes names that XML cannot have', async () => {
      const { root, list } = await newListed('a\uffff', 'a<&>b'.replaceAll(/[<>]/g, ''));
      const { text } = await list('');
      expect(text).toContain('<Name Encoded="true">a%EF%BF%BF</Name>');
      expect(text).toContain('<Name>a&amp;b</Name>');
      const found = [];
      for await (const { name } of root.listFilesAndDirectories()) found.push(name);
      expect(found).toEqual(['a&b', 'a\uffff']);
    });

    it.each([
      ['maxresults=0', 'OutOfRangeQueryParameterValue'],
      ['maxresults=x', 'InvalidQueryParameterValue'],
      ['marker=x', 'InvalidQueryParameterValue'],
      ['marker=1!4!AAAAA', 'InvalidQueryParameterValue'],
      ['include=size', 'InvalidQueryParameterValue'],
    ])('refuses %s', async (query, code) => {
      const { list } = await newListed();
      expectError(await list(`&${query}`), 400, code);
    });

    it('lists nothing for a prefix that no name can have, and finds no file', async () => {
      const { share, list } = await newListed('f');
      expect((await list(`&prefix=${'x'.repeat(3_000)}`)).text).toContain('<Entries></Entries>');
      await expectRefusal(share.getDirectoryClient('f').listFilesAndDirectories().next(), 404, 'ResourceNotFound');
    });
  });
});
