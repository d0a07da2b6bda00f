/** Shared access signatures for shares and files, made and used by Microsoft's client. */
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  AnonymousCredential,
  FileSASPermissions,
  generateAccountSASQueryParameters,
  generateFileSASQueryParameters,
  newPipeline,
  ShareClient,
  ShareSASPermissions,
  ShareServiceClient,
  StorageSharedKeyCredential,
} from '@azure/storage-file-share';
import { describe, expect, it } from 'vitest';
import {
  account,
  accountKey,
  expectError,
  expectRefusal,
  onEveryEngine,
  type Running,
} from '../support/test-server.ts';

const credential = new StorageSharedKeyCredential(account, accountKey);
const expiresOn = new Date('2099-01-01T00:00:00Z');
const noRetries = () => newPipeline(new AnonymousCredential(), { retryOptions: { maxTries: 1 } });

function shareSas(shareName: string, letters: string, more: object = {}): string {
  const permissions = ShareSASPermissions.parse(letters);
  return generateFileSASQueryParameters({ shareName, permissions, expiresOn, ...more }, credential).toString();
}

function fileSas(shareName: string, filePath: string, letters: string, more: object = {}): string {
  const permissions = FileSASPermissions.parse(letters);
  const values = { shareName, filePath, permissions, expiresOn, ...more };
  return generateFileSASQueryParameters(values, credential).toString();
}

function accountSas(letters: string, types: string, services = 'f'): string {
  const values = {
    permissions: AccountSASPermissions.parse(letters),
    resourceTypes: AccountSASResourceTypes.parse(types).toString(),
    services: AccountSASServices.parse(services).toString(),
    expiresOn,
  };
  return generateAccountSASQueryParameters(values, credential).toString();
}

const shareWith = ({ url }: { url: string }, sas: string) => new ShareClient(`${url}?${sas}`, noRetries());
const serviceWith = (running: Running, sas: string) =>
  new ShareServiceClient(`${running.server.fileUrl}?${sas}`, noRetries());

async function shareWithFile(running: Running) {
  const share = await running.newShare();
  await share.createDirectory('dir');
  const file = share.getDirectoryClient('dir').getFileClient('a.txt');
  await file.create(5, { fileHttpHeaders: { fileContentType: 'text/plain' } });
  await file.uploadRange('Hello', 0, 5);
  return { share, file };
}

const names = async (share: ShareClient): Promise<string[]> => {
  const found: string[] = [];
  for await (const { name } of share.getDirectoryClient('').listFilesAndDirectories()) found.push(name);
  return found;
};
const fileIn = (share: ShareClient, name = 'a.txt') => share.getDirectoryClient('dir').getFileClient(name);

describe('A service SAS for a share', () => {
  onEveryEngine((running) => {
    it('does what its letters say', async () => {
      const { share } = await shareWithFile(running);
      const [reader, creator, writer, deleter, lister] = [...'rcwdl'].map((letter) =>
        shareWith(share, shareSas(share.name, letter)),
      );
      expect((await fileIn(reader!).downloadToBuffer()).toString()).toBe('Hello');
      expect(await names(lister!)).toEqual(['dir']);
      await fileIn(creator!, 'new').create(3);
      await fileIn(writer!, 'new').uploadRange('abc', 0, 3);
      await fileIn(deleter!, 'new').delete();
      const mismatch = 'AuthorizationPermissionMismatch';
      await expectRefusal(fileIn(writer!).getProperties(), 403, mismatch);
      await expectRefusal(fileIn(reader!).uploadRange('abc', 0, 3), 403, mismatch);
      await expectRefusal(fileIn(creator!).delete(), 403, mismatch);
      await expectRefusal(names(reader!), 403, mismatch);
    });

    it('with the right to create alone replaces nothing', async () => {
      const { share, file } = await shareWithFile(running);
      const creator = shareWith(share, shareSas(share.name, 'c'));
      await expectRefusal(fileIn(creator).create(1), 403, 'AuthorizationPermissionMismatch');
      expect((await file.downloadToBuffer()).toString()).toBe('Hello');
      await fileIn(shareWith(share, shareSas(share.name, 'cw'))).create(1);
    });

    it('does not read, change or remove the share itself', async () => {
      const share = await running.newShare();
      const holder = shareWith(share, shareSas(share.name, 'rcwdl'));
      await expectRefusal(holder.getProperties(), 403, 'AuthorizationFailure');
      await expectRefusal(holder.setMetadata({ a: '1' }), 403, 'AuthorizationFailure');
      await expectRefusal(holder.setAccessPolicy([]), 403, 'AuthorizationFailure');
      await expectRefusal(holder.delete(), 403, 'AuthorizationFailure');
      await expectRefusal(holder.create(), 403, 'AuthorizationFailure');
    });

    it('permits this share and no other, and nothing of the account', async () => {
      const [{ share }, other] = [await shareWithFile(running), await running.newShare()];
      const sas = shareSas(share.name, 'rcwdl');
      await expectRefusal(names(shareWith(other, sas)), 403, 'AuthenticationFailed');
      await expectRefusal(serviceWith(running, sas).listShares().next(), 403, 'AuthenticationFailed');
    });

    it('expires by the time of the server', async () => {
      const share = await running.newShare();
      const holder = shareWith(share, shareSas(share.name, 'l', { expiresOn: new Date(Date.now() + 3_600_000) }));
      expect(await names(holder)).toEqual([]);
      await running.server.clock.advance(3_700);
      await expectRefusal(names(holder), 403, 'AuthenticationFailed');
    });

    it('is void once its stored policy is gone, or the share is another one', async () => {
      const { share } = await shareWithFile(running);
      const accessPolicy = { startsOn: new Date('2020-01-01'), expiresOn, permissions: 'rl' };
      await share.setAccessPolicy([{ id: 'reader', accessPolicy }]);
      const sas = generateFileSASQueryParameters(
        { shareName: share.name, identifier: 'reader' },
        credential,
      ).toString();
      const holder = shareWith(share, sas);
      expect(await names(holder)).toEqual(['dir']);
      await expectRefusal(fileIn(holder).delete(), 403, 'AuthorizationPermissionMismatch');
      await share.setAccessPolicy([]);
      await expectRefusal(names(holder), 403, 'AuthenticationFailed');
      await share.delete();
      await share.create();
      await expectRefusal(names(holder), 403, 'AuthenticationFailed');
    });
  });
});

describe('A service SAS for a file', () => {
  onEveryEngine((running) => {
    it('opens this file and nothing else', async () => {
      const { share, file } = await shareWithFile(running);
      await fileIn(share, 'b.txt').create(1);
      const sas = fileSas(share.name, 'dir/a.txt', 'rcwd');
      const holder = shareWith(share, sas);
      expect((await fileIn(holder).downloadToBuffer()).toString()).toBe('Hello');
      await expectRefusal(fileIn(holder, 'b.txt').getProperties(), 403, 'AuthenticationFailed');
      await expectRefusal(names(holder), 403, 'AuthenticationFailed');
      await fileIn(holder).delete();
      expect(await file.exists()).toBe(false);
    });

    it('is not one for the share, whatever it calls itself', async () => {
      const { share } = await shareWithFile(running);
      const sas = fileSas(share.name, 'dir/a.txt', 'r').replace('sr=f', 'sr=s');
      await expectRefusal(fileIn(shareWith(share, sas)).getProperties(), 403, 'AuthenticationFailed');
      const wrong = fileSas(share.name, 'dir/a.txt', 'r').replace('sr=f', 'sr=b');
      await expectRefusal(fileIn(shareWith(share, wrong)).getProperties(), 403, 'AuthenticationFailed');
    });

    it('replaces headers of the answer, as it says', async () => {
      const { share } = await shareWithFile(running);
      const sas = fileSas(share.name, 'dir/a.txt', 'r', { contentType: 'text/html', cacheControl: 'no-store' });
      const found = await fileIn(shareWith(share, sas)).getProperties();
      expect([found.contentType, found.cacheControl]).toEqual(['text/html', 'no-store']);
    });
  });
});

describe('An account SAS', () => {
  onEveryEngine((running) => {
    it('opens the service, shares or files, as its resource types say', async () => {
      const { share } = await shareWithFile(running);
      const types = { s: accountSas('rwdlc', 's'), c: accountSas('rwdlc', 'c'), o: accountSas('rwdlc', 'o') };
      const mismatch = 'AuthorizationResourceTypeMismatch';
      expect((await serviceWith(running, types.s).listShares().next()).done).toBe(false);
      await expectRefusal(serviceWith(running, types.c).listShares().next(), 403, mismatch);
      await shareWith(share, types.c).getProperties();
      await expectRefusal(shareWith(share, types.o).getProperties(), 403, mismatch);
      expect(await names(shareWith(share, types.c))).toEqual(['dir']);
      await expectRefusal(names(shareWith(share, types.o)), 403, mismatch);
      expect((await shareWith(share, types.o).getDirectoryClient('').getProperties()).fileId).toBe('0');
      await fileIn(shareWith(share, types.o)).getProperties();
      await expectRefusal(fileIn(shareWith(share, types.c)).getProperties(), 403, mismatch);
    });

    it('is for its services, and never for policies', async () => {
      const share = await running.newShare();
      const queues = shareWith(share, accountSas('rwdlc', 'sco', 'bqt'));
      await expectRefusal(queues.getProperties(), 403, 'AuthorizationServiceMismatch');
      const all = shareWith(share, accountSas('rwdlacup', 'sco'));
      await expectRefusal(all.getAccessPolicy(), 403, 'AuthorizationFailure');
    });
  });
});

describe('A caller without a credential', () => {
  onEveryEngine((running) => {
    it('may do nothing', async () => {
      const { share } = await shareWithFile(running);
      const get = (path: string) => running.request('GET', path, { of: 'file', unsigned: true });
      for (const path of ['/?comp=list', `/${share.name}?restype=share`, `/${share.name}/dir/a.txt`])
        expectError(await get(path), 401, 'NoAuthenticationInformation');
    });
  });
});
