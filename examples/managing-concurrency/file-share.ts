/** Files: over REST the last writer wins, unless the file is leased, or an SMB client has it open and does not share it. */
import type { ShareClient, ShareFileClient } from '@azure/storage-file-share';
import { ACCESS, SHARE, SmbClient } from './smb-client.ts';
import type { Account, Story } from './story.ts';

const ALL = SHARE.read | SHARE.write | SHARE.delete;

export async function leaseFile(share: ShareClient, story: Story): Promise<void> {
  story.chapter('A file over REST');
  const file = await createFile(share, 'leased.txt', 'Hello');
  await story.step('Two clients write the file: the last writer wins', async () => {
    await write(file, 'first');
    await write(file, 'again');
  });
  const lease = file.getShareLeaseClient();
  const { leaseId } = await story.step('Client 1 acquires a lease, which never expires', () => lease.acquireLease(-1));
  await story.refused('Client 2 writes without its id', 412, 'LeaseIdMissing', () => write(file, 'other'));
  await story.refused('Client 2 acquires one, too', 409, 'LeaseAlreadyPresent', () =>
    file.getShareLeaseClient().acquireLease(-1),
  );
  await story.step('Client 1 writes with the id, and releases the lease', async () => {
    await write(file, 'leased', leaseId);
    await lease.releaseLease();
  });
  story.fact('The file has', (await file.downloadToBuffer()).toString(), 'leased');
}

export async function openOverSmb(share: ShareClient, account: Account, story: Story): Promise<void> {
  story.chapter('A file over REST while SMB clients have it open');
  const file = await createFile(share, 'report.txt', 'figures');
  const one = await SmbClient.connect({ ...account.smb!, share: share.name });
  const other = await SmbClient.connect({ ...account.smb!, share: share.name });
  try {
    await excludeRest(one, file, story);
    await deleteWhileOpen({ one, other, share, file, story });
  } finally {
    one.end();
    other.end();
  }
}

async function excludeRest(client: SmbClient, file: ShareFileClient, story: Story): Promise<void> {
  const access = ACCESS.read | ACCESS.write;
  const alone = await story.step('An SMB client opens the file for reading and writing, and shares nothing', () =>
    client.open(file.name, { access, share: SHARE.none }),
  );
  await story.refused('REST reads the file', 409, 'SharingViolation', () => file.downloadToBuffer());
  await story.refused('REST writes to the file', 409, 'SharingViolation', () => write(file, 'numbers'));
  await story.step('REST gets the properties: no open excludes that', () => file.getProperties());
  await story.step('The SMB client closes the file', () => client.close(alone));
  const shared = await story.step('It opens the file again, and shares reading', () =>
    client.open(file.name, { access, share: SHARE.read }),
  );
  await story.step('REST reads the file', () => file.downloadToBuffer());
  await story.refused('REST writes to the file', 409, 'SharingViolation', () => write(file, 'numbers'));
  await story.step('The SMB client closes the file', () => client.close(shared));
  await story.step('REST writes to the file', () => write(file, 'numbers'));
}

interface Deletion {
  readonly one: SmbClient;
  readonly other: SmbClient;
  readonly share: ShareClient;
  readonly file: ShareFileClient;
  readonly story: Story;
}

async function deleteWhileOpen({ one, other, share, file, story }: Deletion): Promise<void> {
  const reader = await story.step('An SMB client opens the file for reading, and shares everything', () =>
    one.open(file.name, { access: ACCESS.read, share: ALL }),
  );
  await story.refused('REST deletes the file', 409, 'SharingViolation', () => file.delete());
  await story.step('Another SMB client deletes the file', async () => {
    await other.close(await other.open(file.name, { access: ACCESS.delete, share: ALL, deleteOnClose: true }));
  });
  await story.refused('The first has it still open, so REST reads', 409, 'SMBDeletePending', () =>
    file.downloadToBuffer(),
  );
  story.fact('Files that REST lists', (await listFiles(share)).filter((name) => name === file.name).length, 0);
  await story.step('The first SMB client closes the file', () => one.close(reader));
  await story.refused('Now the file is gone: REST reads', 404, 'ResourceNotFound', () => file.downloadToBuffer());
}

async function createFile(share: ShareClient, name: string, text: string): Promise<ShareFileClient> {
  const file = share.rootDirectoryClient.getFileClient(name);
  await file.create(text.length);
  await write(file, text);
  return file;
}

async function write(file: ShareFileClient, text: string, leaseId?: string): Promise<void> {
  const leaseAccessConditions = leaseId === undefined ? {} : { leaseAccessConditions: { leaseId } };
  await file.resize(text.length, leaseAccessConditions);
  await file.uploadRange(text, 0, text.length, leaseAccessConditions);
}

async function listFiles(share: ShareClient): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of share.rootDirectoryClient.listFilesAndDirectories()) names.push(name);
  return names;
}
