/** The programs in examples/, run as a user runs them. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { root } from '../support/repository-copy.ts';
import { account, accountKey, onEveryEngine } from '../support/test-server.ts';

const run = promisify(execFile);

onEveryEngine((running) => {
  const connectionString = () => {
    const { blobUrl, tableUrl } = running.server;
    const endpoints = `BlobEndpoint=${blobUrl};TableEndpoint=${tableUrl}`;
    return `DefaultEndpointsProtocol=http;AccountName=${account};AccountKey=${accountKey};${endpoints};`;
  };

  it('A lease on a blob keeps the workers of a table from spoiling each other', async () => {
    const example = join(root, 'examples', 'lease-guards-table.mjs');
    const { stdout, stderr } = await run(process.execPath, [example, connectionString()]);
    expect(stderr).toBe('');
    // A balance that was written over would be another.
    expect(stdout).toBe('ada  9997\nbob  10001\neve  10002\nsum  30000\n');
  });
});
