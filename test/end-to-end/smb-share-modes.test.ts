/** Microsoft's table of "Managing File Locks": which operations of REST the share mode of an SMB open refuses, live. */
import type { ShareFileClient } from '@azure/storage-file-share';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ACCESS, DISPOSITION, SHARE, SmbClient } from '../../examples/managing-concurrency/smb-client.ts';
import { account, accountKey, serverFor } from '../support/test-server.ts';

const operations: Readonly<Record<string, (file: ShareFileClient) => Promise<unknown>>> = {
  'Get File Properties': (file) => file.getProperties(),
  'Create File': (file) => file.create(4),
  'Get File': (file) => file.downloadToBuffer(),
  'List Ranges': (file) => file.getRangeList(),
  'Set File Metadata': (file) => file.setMetadata({ colour: 'blue' }),
  'Put Range': (file) => file.uploadRange('text', 0, 4),
  'Delete File': (file) => file.delete(),
  'Lease File': async (file) => {
    const lease = file.getShareLeaseClient();
    await lease.acquireLease(-1);
    await lease.releaseLease();
  },
};
const everything = Object.keys(operations).filter((name) => name !== 'Get File Properties');
const without = (...names: string[]) => everything.filter((name) => !names.includes(name));

const { read, write, delete: deletion } = SHARE;
const readers = ['Get File', 'List Ranges'];
const writers = ['Set File Metadata', 'Put Range'];
/** The refused operations of each row. */
const rows: [title: string, share: number, refused: string[]][] = [
  ['None', SHARE.none, everything],
  ['Read', read, without(...readers)],
  ['Write', write, without(...writers)],
  ['Delete', deletion, everything],
  ['Read and Write', read | write, without(...readers, ...writers)],
  ['Read and Delete', read | deletion, without(...readers)],
  ['Write and Delete', write | deletion, without(...writers, 'Create File')],
  ['Read, Write and Delete', read | write | deletion, ['Delete File']],
];

describe('Beside an SMB open that reads', () => {
  const running = serverFor('memory');
  let client: SmbClient;
  let names = 0;
  const share = () => running.files.getShareClient('locked');
  beforeAll(async () => {
    await share().create();
    const { hostname: host, port } = new URL(running.server.smbUrl);
    client = await SmbClient.connect({
      host,
      port: Number(port),
      share: 'locked',
      user: account,
      password: accountKey,
    });
  });
  afterAll(() => client?.end());

  it.each(rows)(
    'with share mode %s, REST is refused by 409 SharingViolation what the mode does not share',
    async (_title, mode, refused) => {
      for (const [name, operation] of Object.entries(operations)) {
        const path = `file-${names++}.txt`;
        const file = share().rootDirectoryClient.getFileClient(path);
        await file.create(4);
        const handle = await client.open(path, { access: ACCESS.read, share: mode, disposition: DISPOSITION.open });
        const answer = await operation(file).then(
          () => 'done',
          ({ statusCode, code }) => `${statusCode} ${code}`,
        );
        await client.close(handle);
        expect([name, answer]).toEqual([name, refused.includes(name) ? '409 SharingViolation' : 'done']);
      }
    },
  );
});
