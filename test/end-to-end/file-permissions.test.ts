/** Create Permission and Get Permission. */
import { ShareClient, ShareSASPermissions } from '@azure/storage-file-share';
import { describe, expect, it } from 'vitest';
import { type Answer, expectError, expectRefusal, onEveryEngine, type Running } from '../support/test-server.ts';

const USER = 'S-1-5-21-1000000001-2000000002-3000000003-1013';
const SDDL = `O:${USER}G:${USER}D:AI(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;${USER})`;
/** 1,600 entries: about 60 KB in binary. */
const LONG = `O:SYG:SYD:${Array.from({ length: 1_600 }, (_, at) => `(A;;FR;;;${USER}${at})`).join('')}`;
/** A conditional entry can be stored, but has no form in SDDL. */
const CONDITIONAL = Buffer.from(
  // Owner and group are the system; the list has one entry of type ACCESS_ALLOWED_CALLBACK_ACE.
  '010004801400000020000000000000002c000000' +
    '010100000000000512000000' +
    '010100000000000512000000' +
    '020024000100000009001c00ff011f000101000000000005120000006172747800000000',
  'hex',
);

onEveryEngine((running) => {
  const path = (share: string) => `/${share}?restype=share&comp=filepermission`;

  const put = (at: Running, share: string, body: string | Uint8Array, headers = {}): Promise<Answer> =>
    at.request('PUT', path(share), { of: 'file', body, headers: { 'Content-Type': 'application/json', ...headers } });

  const get = (at: Running, share: string, key: string | undefined, headers = {}): Promise<Answer> =>
    at.request('GET', path(share), { of: 'file', headers: { 'x-ms-file-permission-key': key, ...headers } });

  describe('Create Permission', () => {
    it('gives the same key for the same permission, and another one for another', async () => {
      const share = await running.newShare();
      const [one, again, other] = [
        await share.createPermission(SDDL),
        await share.createPermission(SDDL),
        await share.createPermission(SDDL.replace('FA', 'FR')),
      ];
      expect(one.filePermissionKey).toMatch(/^\d+\*\d+$/);
      expect(again.filePermissionKey).toBe(one.filePermissionKey);
      expect(other.filePermissionKey).not.toBe(one.filePermissionKey);
    });

    it('takes one of 60 KB', async () => {
      const share = await running.newShare();
      const { filePermissionKey } = await share.createPermission(LONG);
      expect((await share.getPermission(filePermissionKey!)).permission).toBe(`${LONG}S:NO_ACCESS_CONTROL`);
    });

    it.each([
      ['words', 'everybody'],
      ['no owner', 'G:SYD:'],
      ['no group', 'O:SYD:'],
      ['no list', 'O:SYG:SY'],
      ['a condition', 'O:SYG:SYD:(XA;;FX;;;AU;(@User.Title=="PM"))'],
      [
        'more than a list can hold',
        LONG.replaceAll('(A;', '(A;;FA;;;SY)(A;').replaceAll('(A;;FA', '(A;;FA;;;SY)(A;;FA'),
      ],
    ])('refuses %s', async (_, permission) => {
      const share = await running.newShare();
      await expectRefusal(share.createPermission(permission), 400, 'FileInvalidPermission');
    });

    it.each([
      ['no JSON', 'permission'],
      ['no object', '"O:SYG:SYD:"'],
      ['nothing', ''],
      ['no permission', '{}'],
      ['a permission that is a number', '{"permission":1}'],
      ['an unknown format', '{"permission":"O:SYG:SYD:","format":"xml"}'],
      ['a format that is a number', '{"permission":"O:SYG:SYD:","format":1}'],
      ['much nesting', '['.repeat(100_000)],
    ])('refuses a body with %s', async (_, body) => {
      const share = await running.newShare();
      expectError(await put(running, share.name, body), 400, 'InvalidInput');
    });

    it('refuses a body that is too long, and one that is not what its MD5 says', async () => {
      const share = await running.newShare();
      const body = JSON.stringify({ permission: SDDL });
      expectError(await put(running, share.name, body.padEnd(262_145)), 413, 'RequestBodyTooLarge');
      const headers = { 'Content-MD5': 'AAAAAAAAAAAAAAAAAAAAAA==' };
      expectError(await put(running, share.name, body, headers), 400, 'Md5Mismatch');
    });

    it('is permitted by a signature for the share that grants writes and deletes', async () => {
      const share = await running.newShare();
      const expiresOn = new Date('2099-01-01T00:00:00Z');
      const holder = (letters: string) =>
        new ShareClient(share.generateSasUrl({ permissions: ShareSASPermissions.parse(letters), expiresOn }));
      const { filePermissionKey } = await holder('wd').createPermission(SDDL);
      expect((await holder('r').getPermission(filePermissionKey!)).permission).toContain(SDDL);
      await expectRefusal(holder('rw').createPermission(SDDL), 403, 'AuthorizationPermissionMismatch');
      await expectRefusal(holder('wd').getPermission(filePermissionKey!), 403, 'AuthorizationPermissionMismatch');
    });

    it('refuses a share that does not exist', async () => {
      expectError(await put(running, 'missing', JSON.stringify({ permission: SDDL })), 404, 'ShareNotFound');
    });
  });

  describe('Get Permission', () => {
    it('gives SDDL, with a list for audits, or the binary form', async () => {
      const share = await running.newShare();
      const { filePermissionKey: key } = await share.createPermission(SDDL);
      expect(await share.getPermission(key!)).toMatchObject({ permission: `${SDDL}S:NO_ACCESS_CONTROL` });
      const binary = await share.getPermission(key!, { filePermissionFormat: 'Binary' });
      expect(Buffer.from(binary.permission, 'base64')).toHaveLength(164);
      const stored = await share.createPermission({ permission: binary.permission, format: 'Binary' });
      expect(stored.filePermissionKey).toBe(key);
      const answer = await get(running, share.name, key, { 'x-ms-file-permission-format': 'Sddl' });
      expect(JSON.parse(answer.text)).toEqual({ permission: `${SDDL}S:NO_ACCESS_CONTROL`, format: 'sddl' });
    });

    it('gives entries with conditions in the binary form only', async () => {
      const share = await running.newShare();
      const permission = CONDITIONAL.toString('base64');
      const { filePermissionKey: key } = await share.createPermission({ permission, format: 'Binary' });
      await expectRefusal(share.getPermission(key!), 400, 'CannotConvertToSddlDueToCustomAce');
      const { permission: binary } = await share.getPermission(key!, { filePermissionFormat: 'Binary' });
      expect(Buffer.from(binary, 'base64').includes('artx')).toBe(true);
    });

    it('refuses a key that the share does not have', async () => {
      const [share, other] = [await running.newShare(), await running.newShare()];
      const { filePermissionKey } = await other.createPermission(SDDL);
      await expectRefusal(share.getPermission(filePermissionKey!), 400, 'FileInvalidPermissionKey');
    });

    it('refuses what is no key', async () => {
      const share = await running.newShare();
      expectError(await get(running, share.name, undefined), 400, 'MissingRequiredHeader', {
        HeaderName: 'x-ms-file-permission-key',
      });
      for (const key of ['everybody', '1*', '1*2*3', `${'1'.repeat(21)}*1`]) {
        const details = { HeaderName: 'x-ms-file-permission-key', HeaderValue: key };
        expectError(await get(running, share.name, key), 400, 'InvalidHeaderValue', details);
      }
      const { filePermissionKey } = await share.createPermission(SDDL);
      const headers = { 'x-ms-file-permission-format': 'xml' };
      expectError(await get(running, share.name, filePermissionKey, headers), 400, 'InvalidHeaderValue');
    });
  });
});
