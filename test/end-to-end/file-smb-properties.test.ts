/** The headers x-ms-file-* of directories and files, in requests and answers. */
import type { ShareClient } from '@azure/storage-file-share';
import { describe, expect, it } from 'vitest';
import { expectError, expectRefusal, onEveryEngine } from '../support/test-server.ts';

const TIME = '2021-03-04T05:06:07.1234567Z';
const OTHER_TIME = '2020-01-02T03:04:05.0000001Z';
const SDDL = 'O:BAG:SYD:PAI(A;OICI;FA;;;SY)(A;;FR;;;WD)';
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/;
const NAMES = ['attributes', 'creation-time', 'last-write-time', 'change-time', 'permission-key', 'id', 'parent-id'];

onEveryEngine((running) => {
  const kinds = [
    { kind: 'directory', query: 'restype=directory', create: {}, plain: 'Directory', hidden: 'Hidden | Directory' },
    {
      kind: 'file',
      query: '',
      create: { 'x-ms-type': 'file', 'x-ms-content-length': '4' },
      plain: 'Archive',
      hidden: 'Hidden | Archive',
    },
  ] as const;

  const put = (path: string, headers: Record<string, string | undefined>) =>
    running.request('PUT', path, { of: 'file', headers });

  /** What the share has under the key of an answer. */
  async function permissionOf(share: ShareClient, headers: Record<string, unknown>): Promise<string> {
    return (await share.getPermission(String(headers['x-ms-file-permission-key']))).permission;
  }

  describe.each(kinds)('A $kind', ({ kind, query, create, plain, hidden }) => {
    const at = (share: ShareClient, comp = '', name = 'made') =>
      `/${share.name}/${name}?${[query, comp].filter((part) => part !== '').join('&')}`;

    it('has the properties of its creation, by default those of the moment', async () => {
      const share = await running.newShare();
      const made = await put(at(share), create);
      expect(made.status).toBe(201);
      const found = await running.request('HEAD', at(share), { of: 'file' });
      for (const name of NAMES) {
        expect(found.headers[`x-ms-file-${name}`]).toBe(made.headers[`x-ms-file-${name}`]);
      }
      expect(made.headers['x-ms-file-attributes']).toBe(plain);
      expect(made.headers['x-ms-file-creation-time']).toMatch(ISO);
      expect(made.headers['x-ms-file-last-write-time']).toBe(made.headers['x-ms-file-creation-time']);
      expect(made.headers['x-ms-file-change-time']).toBe(made.headers['x-ms-file-creation-time']);
      expect(made.headers['x-ms-file-id']).toMatch(/^[1-9]\d*$/);
      expect(made.headers['x-ms-file-parent-id']).toBe('0');
      expect(await permissionOf(share, made.headers)).toMatch(/^O:SYG:SYD:AI\(A;(?:OICI)?ID;FA;;;BA\)/);
    });

    it('is created with attributes, times and a permission', async () => {
      const share = await running.newShare();
      const { headers } = await put(at(share), {
        ...create,
        'x-ms-file-attributes': 'hidden',
        'x-ms-file-creation-time': TIME,
        'x-ms-file-last-write-time': OTHER_TIME,
        'x-ms-file-permission': SDDL,
      });
      expect(headers).toMatchObject({
        'x-ms-file-attributes': hidden,
        'x-ms-file-creation-time': TIME,
        'x-ms-file-last-write-time': OTHER_TIME,
        'x-ms-file-change-time': OTHER_TIME,
      });
      expect(await permissionOf(share, headers)).toBe(`${SDDL}S:NO_ACCESS_CONTROL`);
    });

    it('keeps what a change does not name, but for the change time', async () => {
      const share = await running.newShare();
      const named = { 'x-ms-file-creation-time': TIME, 'x-ms-file-change-time': TIME, 'x-ms-file-permission': SDDL };
      const before = (await put(at(share), { ...create, ...named, 'x-ms-file-attributes': 'Hidden' })).headers;
      const changed = await put(at(share, 'comp=properties'), {});
      expect(changed.status).toBe(200);
      for (const name of NAMES.filter((each) => each !== 'change-time')) {
        expect(changed.headers[`x-ms-file-${name}`]).toBe(before[`x-ms-file-${name}`]);
      }
      expect(changed.headers['x-ms-file-change-time']).not.toBe(TIME);
    });

    it('takes what a change names', async () => {
      const share = await running.newShare();
      const { filePermissionKey } = await share.createPermission(SDDL);
      await put(at(share), { ...create, 'x-ms-file-attributes': 'Hidden' });
      const { headers } = await put(at(share, 'comp=properties'), {
        'x-ms-file-attributes': 'None',
        'x-ms-file-creation-time': TIME,
        'x-ms-file-last-write-time': 'Preserve',
        'x-ms-file-change-time': OTHER_TIME,
        'x-ms-file-permission-key': filePermissionKey!,
      });
      expect(headers).toMatchObject({
        'x-ms-file-attributes': kind === 'file' ? 'None' : 'Directory',
        'x-ms-file-creation-time': TIME,
        'x-ms-file-change-time': OTHER_TIME,
        'x-ms-file-permission-key': filePermissionKey,
      });
      const again = await put(at(share, 'comp=properties'), { 'x-ms-file-permission': 'inherit' });
      expect(await permissionOf(share, again.headers)).toMatch(/^O:SYG:SYD:AI/);
    });

    it('adds what it inherits to the permission of its creation, unless that is restored', async () => {
      const share = await running.newShare();
      const named = 'O:BAG:SYD:(A;;FR;;;WD)';
      const added = await put(at(share), { ...create, 'x-ms-file-permission': named });
      expect(await permissionOf(share, added.headers)).toMatch(/^O:BAG:SYD:AI\(A;;FR;;;WD\)\(A;(?:OICI)?ID;FA;;;BA\)/);
      const restored = await put(at(share, '', 'restored'), {
        ...create,
        'x-ms-file-permission': named,
        'x-ms-file-property-semantics': 'Restore',
        'x-ms-file-attributes': 'ReadOnly',
      });
      expect(await permissionOf(share, restored.headers)).toBe(`${named}S:NO_ACCESS_CONTROL`);
      expect(restored.headers['x-ms-file-attributes']).toBe(kind === 'file' ? 'ReadOnly' : 'ReadOnly | Directory');
    });

    it('has a permission that is longer than a header by its key', async () => {
      const share = await running.newShare();
      const entries = Array.from({ length: 1_500 }, (_, i) => `(A;OICI;FR;;;S-1-5-21-1-2-3-${i + 1_000})`).join('');
      const long = `O:SYG:SYD:P${entries}`;
      const { filePermissionKey } = await share.createPermission(long);
      const { headers } = await put(at(share), { ...create, 'x-ms-file-permission-key': filePermissionKey! });
      expect(headers['x-ms-file-permission-key']).toBe(filePermissionKey);
      const tooLong = { ...create, 'x-ms-file-permission': long.slice(0, 8_193) };
      expectError(await put(at(share, '', 'other'), tooLong), 400, 'InvalidHeaderValue');
      if (kind === 'file') return;
      const inherited = await put(`/${share.name}/made/below`, kinds[1].create);
      expect((await permissionOf(share, inherited.headers)).match(/A;ID;FR/g)).toHaveLength(1_500);
    });

    it.each([
      ['x-ms-file-attributes', 'Compressed'],
      ['x-ms-file-attributes', 'preserve'],
      ['x-ms-file-creation-time', 'yesterday'],
      ['x-ms-file-creation-time', 'preserve'],
      ['x-ms-file-last-write-time', '1600-01-01T00:00:00Z'],
      ['x-ms-file-change-time', '2021-02-30T00:00:00Z'],
      ['x-ms-file-permission-key', 'everybody'],
      ['x-ms-file-permission-format', 'xml'],
      ['x-ms-file-property-semantics', 'old'],
    ])('is not created with %s: %s', async (name, value) => {
      const share = await running.newShare();
      const also = name.endsWith('format') || name.endsWith('semantics') ? { 'x-ms-file-permission': SDDL } : {};
      const answer = await put(at(share), { ...create, ...also, [name]: value });
      expectError(answer, 400, 'InvalidHeaderValue', { HeaderName: name, HeaderValue: value });
      expectError(await running.request('GET', at(share), { of: 'file' }), 404, 'ResourceNotFound');
    });

    it('is not created with a permission that is none, or unknown, or named twice', async () => {
      const share = await running.newShare();
      const permission = (value: string) => put(at(share), { ...create, 'x-ms-file-permission': value });
      expectError(await permission('everybody'), 400, 'FileInvalidPermission');
      expectError(await permission('preserve'), 400, 'FileInvalidPermission');
      expectError(await permission('O:SYG:SYD:(XA;;FX;;;AU;(@User.Title=="PM"))'), 400, 'FileInvalidPermission');
      const key = { ...create, 'x-ms-file-permission-key': '1*1' };
      expectError(await put(at(share), key), 400, 'FileInvalidPermissionKey');
      expectError(await put(at(share), { ...key, 'x-ms-file-permission': SDDL }), 400, 'InvalidHeaderValue');
    });

    it('needs its properties in the first versions that had them, and has none in older ones', async () => {
      const share = await running.newShare();
      const all = {
        'x-ms-file-permission': 'Inherit',
        'x-ms-file-attributes': 'None',
        'x-ms-file-creation-time': 'now',
        'x-ms-file-last-write-time': 'now',
      };
      const since = { ...create, ...all, 'x-ms-version': '2019-02-02' };
      for (const name of Object.keys(all)) {
        const answer = await put(at(share), { ...since, [name]: undefined });
        expectError(answer, 400, 'MissingRequiredHeader', { HeaderName: name });
      }
      expect((await put(at(share), since)).headers['x-ms-file-attributes']).toBe(plain);
      const older = await put(at(share, '', 'older'), { ...create, 'x-ms-version': '2018-11-09' });
      expect(older.status).toBe(201);
      expect(Object.keys(older.headers).filter((name) => name.startsWith('x-ms-file-'))).toEqual([]);
    });
  });

  it('takes permissions in the binary form', async () => {
    const share = await running.newShare();
    const { filePermissionKey } = await share.createPermission(SDDL);
    const { permission } = await share.getPermission(filePermissionKey!, { filePermissionFormat: 'Binary' });
    const directory = share.getDirectoryClient('binary');
    const made = await directory.create({ filePermission: permission, filePermissionFormat: 'Binary' });
    expect(made.filePermissionKey).toBe(filePermissionKey);
    await expectRefusal(directory.setProperties({ filePermission: permission }), 400, 'FileInvalidPermission');
  });

  it('gives a node below a directory the id of its parent', async () => {
    const share = await running.newShare();
    const directory = share.getDirectoryClient('above');
    const { fileId } = await directory.create();
    const below = await directory.getFileClient('below').create(1);
    expect(below.fileParentId).toBe(fileId);
    expect(below.fileId).not.toBe(fileId);
  });
});
