import type { ShareClient, ShareFileClient } from '@azure/storage-file-share';
import { check } from 'holdfast';
import { describe, expect, it } from 'vitest';
import {
  account,
  expectError,
  expectRefusal,
  filesAt,
  onEveryEngine,
  onLmdb,
  type Running,
} from '../support/test-server.ts';

/** The SDK's rename leaves out the account in the path: only with the account in the host it finds the share. */
async function newRenamable(running: Running): Promise<ShareClient> {
  const { name } = await running.newShare();
  return filesAt('http://devstoreaccount1.file.localhost', () => new URL(running.files.url)).getShareClient(name);
}

async function newFile(share: ShareClient, path: string, text: string): Promise<ShareFileClient> {
  const file = share.rootDirectoryClient.getFileClient(path);
  await file.create(text.length);
  await file.uploadRange(text, 0, text.length);
  return file;
}

const textOf = async (file: ShareFileClient) => (await file.downloadToBuffer()).toString();

async function listed(running: Running, prefix: string, pageSize = 100) {
  const found: string[] = [];
  const pages = running.files.listShares({ includeSnapshots: true, prefix }).byPage({ maxPageSize: pageSize });
  for await (const { shareItems } of pages) found.push(...shareItems!.map(({ snapshot }) => snapshot ?? 'share'));
  return found;
}

async function namesIn(share: ShareClient, path = ''): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of share.getDirectoryClient(path).listFilesAndDirectories()) names.push(name);
  return names.sort();
}

describe('Snapshot Share', () => {
  onEveryEngine((running) => {
    it('keeps files that are deleted, renamed, overwritten or changed since, under their names', async () => {
      const share = await newRenamable(running);
      await share.createDirectory('folder');
      const inFolder = share.getDirectoryClient('folder').getFileClient('inside');
      await inFolder.create(5);
      await inFolder.uploadRange('first', 0, 5);
      await newFile(share, 'deleted', 'gone');
      await newFile(share, 'renamed', 'moved');
      const changed = await newFile(share, 'changed', 'before');
      await changed.setMetadata({ state: 'old' });
      const old = await changed.getProperties();

      const { snapshot } = await share.createSnapshot();
      expect(snapshot).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.0000000Z$/);
      await share.deleteFile('deleted');
      await share.rootDirectoryClient.getFileClient('renamed').rename('elsewhere');
      await share.getDirectoryClient('folder').rename('moved');
      await changed.uploadRange('AFTER!', 0, 6);
      await changed.setMetadata({ state: 'new' });
      await share.createDirectory('added');

      const before = share.withSnapshot(snapshot!);
      expect(await namesIn(before)).toEqual(['changed', 'deleted', 'folder', 'renamed']);
      expect(await namesIn(before, 'folder')).toEqual(['inside']);
      expect(await namesIn(share)).toEqual(['added', 'changed', 'elsewhere', 'moved']);
      const root = before.rootDirectoryClient;
      expect(await textOf(root.getFileClient('deleted'))).toBe('gone');
      expect(await textOf(root.getFileClient('renamed'))).toBe('moved');
      expect(await textOf(before.getDirectoryClient('folder').getFileClient('inside'))).toBe('first');
      expect(await textOf(root.getFileClient('changed'))).toBe('before');
      const kept = await root.getFileClient('changed').getProperties();
      expect([kept.metadata, kept.etag, kept.lastModified, kept.fileLastWriteOn, kept.fileId]).toEqual([
        ...[{ state: 'old' }, old.etag, old.lastModified, old.fileLastWriteOn, old.fileId],
      ]);
      expect(await textOf(changed)).toBe('AFTER!');
      await expectRefusal(root.getFileClient('elsewhere').getProperties(), 404, 'ResourceNotFound');
      await expectRefusal(before.getDirectoryClient('added').getProperties(), 404, 'ResourceNotFound');
      expect(await root.getFileClient('added').exists()).toBe(false);
    });

    it('has the metadata of the share, or that of the request, and the settings of its time', async () => {
      const share = await running.newShare();
      await share.setMetadata({ of: 'share' });
      await share.setProperties({ quotaInGB: 7 });
      const { etag } = await share.getProperties();
      const first = await share.createSnapshot();
      const second = await share.createSnapshot({ metadata: { of: 'snapshot' } });
      expect(first.etag).toBe(etag);
      expect(second.etag).not.toBe(etag);
      expect((await share.getProperties()).etag).toBe(etag);
      await share.setProperties({ quotaInGB: 9 });
      await share.setMetadata({ of: 'later' });
      const [one, two] = await Promise.all(
        [first, second].map(({ snapshot }) => share.withSnapshot(snapshot!).getProperties()),
      );
      expect([one!.metadata, one!.quota, one!.etag]).toEqual([{ of: 'share' }, 7, etag]);
      expect([two!.metadata, two!.quota, two!.etag]).toEqual([{ of: 'snapshot' }, 7, second.etag]);
    });

    it('takes the next second if one was taken in this one, also if that is deleted, and at most 200', async () => {
      const share = await running.newShare();
      const seconds: string[] = [];
      for (let i = 0; i < 200; i++) seconds.push((await share.createSnapshot()).snapshot!);
      expect(new Set(seconds).size).toBe(200);
      expect(seconds).toEqual(seconds.toSorted());
      await expectRefusal(share.createSnapshot(), 409, 'ShareSnapshotCountExceeded');
      await share.withSnapshot(seconds.at(-1)!).delete();
      const { snapshot } = await share.createSnapshot();
      expect(snapshot! > seconds.at(-1)!).toBe(true);
      expect(await listed(running, share.name, 70)).toEqual([...seconds.slice(0, -1), snapshot, 'share']);
    }, 120_000);

    it('is listed before its share, the oldest first, on pages of any length', async () => {
      const share = await running.newShare();
      const other = running.files.getShareClient(`${share.name}-other`);
      await other.create();
      const taken = [await share.createSnapshot(), await share.createSnapshot(), await share.createSnapshot()];
      const seconds = taken.map(({ snapshot }) => snapshot);
      const last = (await other.createSnapshot()).snapshot;
      for (const pageSize of [1, 2, 3, 100])
        expect(await listed(running, share.name, pageSize)).toEqual([...seconds, 'share', last, 'share']);
    });

    it('can be read and not written, and only where Azure takes the parameter', async () => {
      const share = await running.newShare();
      await newFile(share, 'file', 'text');
      await share.createDirectory('dir');
      const { snapshot } = await share.createSnapshot();
      const at = `sharesnapshot=${snapshot}`;
      const send = (method: string, path: string, headers: Record<string, string> = {}) =>
        running.request(method, `/${share.name}${path}`, { of: 'file', headers });
      for (const [method, path, headers] of [
        ['PUT', `/new?${at}`, { 'x-ms-type': 'file', 'x-ms-content-length': '1' }],
        ['PUT', `/file?comp=range&${at}`, { 'x-ms-write': 'clear', 'x-ms-range': 'bytes=0-1' }],
        ['PUT', `/file?comp=metadata&${at}`, {}],
        ['PUT', `/file?comp=properties&${at}`, {}],
        ['DELETE', `/file?${at}`, {}],
        ['PUT', `/new?restype=directory&${at}`, {}],
        ['DELETE', `/dir?restype=directory&${at}`, {}],
        ['PUT', `?restype=share&comp=metadata&${at}`, {}],
        ['PUT', `?restype=share&comp=properties&${at}`, { 'x-ms-share-quota': '8' }],
        ['PUT', `?restype=share&comp=snapshot&${at}`, {}],
        ['GET', `?restype=share&comp=stats&${at}`, {}],
        ['GET', `?restype=share&comp=acl&${at}`, {}],
      ] as const)
        expectError(await send(method, path, headers), 400, 'ShareSnapshotOperationNotSupported');
      const bad = await send('GET', '/file?sharesnapshot=yesterday');
      expectError(bad, 400, 'InvalidQueryParameterValue', { QueryParameterName: 'sharesnapshot' });
      const missing = await send('GET', '/file?sharesnapshot=2020-01-01T00:00:00.0000000Z');
      expectError(missing, 404, 'ShareNotFound');
      const read = await send('GET', `/file?${at}`, { 'x-ms-lease-id': '00000000-0000-0000-0000-000000000001' });
      expectError(read, 412, 'LeaseNotPresentWithFileOperation');
      const fileHeaders = (await send('HEAD', `/file?${at}`)).headers;
      expect(fileHeaders['x-ms-lease-state']).toBeUndefined();
      expect((await send('GET', `/dir?restype=directory&comp=metadata&${at}`)).status).toBe(200);
      expect((await send('GET', `?restype=share&comp=metadata&${at}`)).status).toBe(200);
      const list = await send('GET', `?restype=directory&comp=list&${at}`);
      expect(list.text).toContain(`ShareSnapshot="${snapshot}"`);
    });

    it('is read with a signature of the share', async () => {
      const share = await running.newShare();
      await newFile(share, 'file', 'text');
      const { snapshot } = await share.createSnapshot();
      await share.deleteFile('file');
      const url = await share.rootDirectoryClient.getFileClient('file').generateSasUrl({
        permissions: { toString: () => 'r' } as never,
        expiresOn: new Date(Date.now() + 3_600_000),
      });
      const answer = await fetch(`${url}&sharesnapshot=${encodeURIComponent(snapshot!)}`);
      expect([answer.status, await answer.text()]).toEqual([200, 'text']);
    });

    it('restores a file by a copy, and gives ranges to others', async () => {
      const share = await running.newShare();
      const file = await newFile(share, 'file', 'precious');
      await file.setMetadata({ kept: 'yes' });
      const { snapshot } = await share.createSnapshot();
      const source = `${file.url}?sharesnapshot=${encodeURIComponent(snapshot!)}`;
      await file.uploadRange('ruined!!', 0, 8);
      const copy = share.rootDirectoryClient.getFileClient('copy');
      expect((await copy.startCopyFromURL(source)).copyStatus).toBe('success');
      expect([await textOf(copy), (await copy.getProperties()).metadata]).toEqual(['precious', { kept: 'yes' }]);
      await file.startCopyFromURL(source);
      expect(await textOf(file)).toBe('precious');
      await share.deleteFile('file');
      await file.startCopyFromURL(source);
      expect(await textOf(file)).toBe('precious');
      const ranges = share.rootDirectoryClient.getFileClient('ranges');
      await ranges.create(8);
      const signed = await file.generateSasUrl({
        permissions: { toString: () => 'r' } as never,
        expiresOn: new Date(Date.now() + 3_600_000),
      });
      await file.uploadRange('XXXX', 0, 4);
      await ranges.uploadRangeFromURL(`${signed}&sharesnapshot=${encodeURIComponent(snapshot!)}`, 0, 0, 8);
      expect(await textOf(ranges)).toBe('precious');
    });

    it('is compared with another by List Ranges', async () => {
      const share = await newRenamable(running);
      const file = share.rootDirectoryClient.getFileClient('file');
      await file.create(4096);
      const first = (await share.createSnapshot()).snapshot!;
      await file.uploadRange(Buffer.alloc(1536, 1), 0, 1536);
      const second = (await share.createSnapshot()).snapshot!;
      await file.clearRange(512, 512);
      const diff = async (of: ShareFileClient, since: string) => {
        const { ranges = [], clearRanges = [] } = await of.getRangeListDiff(since);
        return { ranges, clearRanges };
      };
      expect(await diff(file, first)).toEqual({
        ranges: [
          { start: 0, end: 511 },
          { start: 1024, end: 1535 },
        ],
        clearRanges: [{ start: 512, end: 1023 }],
      });
      expect(await diff(file, second)).toEqual({ ranges: [], clearRanges: [{ start: 512, end: 1023 }] });
      const atSecond = share.withSnapshot(second).rootDirectoryClient.getFileClient('file');
      expect(await diff(atSecond, first)).toEqual({ ranges: [{ start: 0, end: 1535 }], clearRanges: [] });
      await expectRefusal(
        share.withSnapshot(first).rootDirectoryClient.getFileClient('file').getRangeListDiff(second),
        ...([400, 'InvalidQueryParameterValue'] as const),
      );
      await file.rename('renamed');
      const renamed = share.rootDirectoryClient.getFileClient('renamed');
      await expectRefusal(renamed.getRangeListDiff(second), 409, 'FileGenerationMismatch');
      const { clearRanges } = await renamed.getRangeListDiff(second, { includeRenames: true });
      expect(clearRanges).toEqual([{ start: 512, end: 1023 }]);
      await file.create(512);
      await expectRefusal(file.getRangeListDiff(second), 409, 'FileGenerationMismatch');
    });

    it('does not count against the quota', async () => {
      const share = await running.newShare();
      await newFile(share, 'file', 'x'.repeat(1000));
      await share.createSnapshot();
      await share.deleteFile('file');
      expect((await share.getStatistics()).shareUsageBytes).toBe(0);
    });
  });
});

describe('Delete Share', () => {
  onEveryEngine((running) => {
    it('refuses a share with snapshots, unless they are included', async () => {
      const share = await running.newShare();
      const { snapshot } = await share.createSnapshot();
      await expectRefusal(share.delete(), 409, 'ShareHasSnapshots');
      await share.withSnapshot(snapshot!).delete();
      await expectRefusal(share.withSnapshot(snapshot!).getProperties(), 404, 'ShareNotFound');
      await share.createSnapshot();
      await share.delete({ deleteSnapshots: 'include' });
      expect(await share.exists()).toBe(false);
    });

    it('refuses a snapshot together with its snapshots', async () => {
      const share = await running.newShare();
      const { snapshot } = await share.createSnapshot();
      const headers = { 'x-ms-delete-snapshots': 'include' };
      const path = `/${share.name}?restype=share&sharesnapshot=${snapshot}`;
      expectError(await running.request('DELETE', path, { of: 'file', headers }), 400, 'InvalidQueryParameterValue');
    });
  });
});

describe('Lease Share of a snapshot', () => {
  onEveryEngine((running) => {
    it('guards the snapshot, apart from the share', async () => {
      const share = await running.newShare();
      const { snapshot } = await share.createSnapshot();
      const before = share.withSnapshot(snapshot!);
      const lease = before.getShareLeaseClient();
      const { leaseId } = await lease.acquireLease(-1);
      expect((await before.getProperties()).leaseState).toBe('leased');
      expect((await share.getProperties()).leaseState).toBe('available');
      await expectRefusal(before.delete(), 412, 'LeaseIdMissing');
      await expectRefusal(share.delete({ deleteSnapshots: 'include' }), 409, 'DeleteShareWhenSnapshotLeased');
      await expectRefusal(
        share.getProperties({ leaseAccessConditions: { leaseId: leaseId! } }),
        ...([412, 'LeaseNotPresentWithContainerOperation'] as const),
      );
      await share.delete({ deleteSnapshots: 'include-leased' });
      expect(await share.exists()).toBe(false);
    });
  });
});

describe('Restore Share', () => {
  onLmdb((running) => {
    it('brings back the snapshots of a share, with what they show', async () => {
      await running.server.setAccount(account, { shareRetentionDays: 7 });
      const share = await running.newShare();
      await newFile(share, 'file', 'kept');
      const { snapshot } = await share.createSnapshot();
      await share.deleteFile('file');
      await share.delete({ deleteSnapshots: 'include' });
      const pages = running.files.listShares({ includeDeleted: true, prefix: share.name }).byPage();
      const { value } = await pages.next();
      const restored = await running.files.undeleteShare(share.name, value.shareItems[0].version);
      const file = restored.withSnapshot(snapshot!).rootDirectoryClient.getFileClient('file');
      expect(await textOf(file)).toBe('kept');
      expect((await check(running.where)).findings).toEqual([]);
      await running.server.setAccount(account, { shareRetentionDays: 0 });
    });
  });
});
