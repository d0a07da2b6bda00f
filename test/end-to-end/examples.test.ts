/** The programs in examples/, run as a user runs them. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { BlobServiceClient } from '@azure/storage-blob';
import { expect, it } from 'vitest';
import { smbAddress } from '../../examples/managing-concurrency/smb-client.ts';
import { tell } from '../../examples/managing-concurrency/tell.ts';
import { root } from '../support/repository-copy.ts';
import { account, accountKey, onEveryEngine } from '../support/test-server.ts';

const run = promisify(execFile);

const smbRefusals = [
  '409 SharingViolation',
  '409 SharingViolation',
  '409 SharingViolation',
  '409 SharingViolation',
  '409 SMBDeletePending',
  '404 ResourceNotFound',
];

onEveryEngine((running) => {
  const connectionString = () => {
    const { blobUrl, queueUrl, tableUrl, fileUrl } = running.server;
    const endpoints = `BlobEndpoint=${blobUrl};QueueEndpoint=${queueUrl};TableEndpoint=${tableUrl};FileEndpoint=${fileUrl}`;
    return `DefaultEndpointsProtocol=http;AccountName=${account};AccountKey=${accountKey};${endpoints};`;
  };

  it('A lease on a blob keeps the workers of a table from spoiling each other', async () => {
    const example = join(root, 'examples', 'lease-guards-table.mjs');
    const { stdout, stderr } = await run(process.execPath, [example, connectionString()]);
    expect(stderr).toBe('');
    // A balance that was written over would be another.
    expect(stdout).toBe('ada  9997\nbob  10001\neve  10002\nsum  30000\n');
  });

  it('Managing concurrency: every step ends as the story says, and nothing is left behind', async () => {
    const lines: string[] = [];
    const pass = (seconds: number) => running.server.clock.advance(seconds);
    // Of several processes none is the one that serves SMB.
    const { smbUrl } = running.server;
    const smb = smbUrl === '' ? undefined : smbAddress(smbUrl, connectionString());
    await tell({ connectionString: connectionString(), prefix: 'story', smb, pass }, (line) => lines.push(line));
    const chapters = lines.filter((line) => line.startsWith('\n')).map((line) => line.trim());
    expect(chapters).toEqual([
      'A blob and its ETag (optimistic concurrency)',
      'A lease on a blob (pessimistic concurrency)',
      'A lease on a container',
      'An entity and its ETag',
      'A table that a lease on a blob guards',
      'Consumers of a queue',
      'A file over REST',
      ...(smb ? ['A file over REST while SMB clients have it open'] : []),
    ]);
    const refusals = lines.map((line) => /refused, (.*)\.$/.exec(line)?.[1]).filter((each) => each !== undefined);
    expect(refusals).toEqual([
      '412 ConditionNotMet',
      '409 BlobAlreadyExists',
      '409 LeaseAlreadyPresent',
      '412 LeaseIdMissing',
      '412 LeaseIdMismatchWithBlobOperation',
      '409 LeaseIsBrokenAndCannotBeRenewed',
      '412 LeaseLost',
      '412 LeaseNotPresentWithBlobOperation',
      '412 LeaseIdMissing',
      '409 EntityAlreadyExists',
      '412 UpdateConditionNotSatisfied',
      '412 UpdateConditionNotSatisfied',
      '404 MessageNotFound',
      '412 LeaseIdMissing',
      '409 LeaseAlreadyPresent',
      ...(smb ? smbRefusals : []),
    ]);
    const blobs = BlobServiceClient.fromConnectionString(connectionString());
    for await (const { name } of blobs.listContainers({ prefix: 'story' })) expect.fail(`${name} is left`);
  });
});

it('npm run example tells the story in a server of its own', async () => {
  const script = join(root, 'scripts', 'run.mjs');
  const { stdout } = await run(process.execPath, [script, 'scripts/example.mjs']);
  expect(stdout).toContain('The client writes with If-Match and its ETag: refused, 412 ConditionNotMet.');
  expect(stdout).toContain('Now the file is gone: REST reads: refused, 404 ResourceNotFound.');
});
