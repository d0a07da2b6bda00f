import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BlobServiceClient, StorageSharedKeyCredential } from '@azure/storage-blob';
import { beforeEach, describe, expect, it } from 'vitest';
import { checkFolder } from '../crash/server.mjs';
import { newFolder, noStrace, type Server, serve } from './server.ts';
import { callsOf, unsafeAnswers } from './trace.ts';

const SEQUENTIAL = 15;
const CONCURRENT = 48;
const STRACE = ['strace', '-D', '-f', '-qq', '-yy', '-s', '160'];
const CALLS = 'openat,read,readv,recvfrom,recvmsg,fdatasync,fsync,msync,pwrite64,pwritev,write,writev,sendmsg,sendto';

describe('Durability', () => {
  beforeEach(({ skip }) => skip(noStrace !== undefined, noStrace));

  it('answers no write before the fdatasync of its commit', async () => {
    const folder = newFolder();
    const trace = join(folder, 'trace');
    const server = await serve(join(folder, 'data'), { before: [...STRACE, '-o', trace, '-e', `trace=${CALLS}`] });
    const container = sdk(server).getContainerClient('one');
    await container.create();

    const marks = new Map<string, string>();
    const upload = async (i: number): Promise<void> => {
      const mark = `mark-${i}-of-this-blob`;
      marks.set(`/devstoreaccount1/one/blob-${i}`, mark);
      // Larger than what shares a page with other rows, so that the mark is at the beginning of a write.
      await container.getBlockBlobClient(`blob-${i}`).upload(mark.padEnd(6_000), 6_000);
    };
    for (let i = 0; i < SEQUENTIAL; i++) await upload(i);
    await Promise.all(Array.from({ length: CONCURRENT }, (_, i) => upload(SEQUENTIAL + i)));
    expect(await server.kill('SIGTERM')).toEqual({ code: 0, signal: null });

    const calls = callsOf(readFileSync(trace, 'utf8'));
    expect(unsafeAnswers(calls, marks)).toEqual([]);
    expect(marks.size).toBe(SEQUENTIAL + CONCURRENT);
    // The same trace without its syncs is found out, for every answer.
    const unsynced = calls.filter(({ name }) => name !== 'fdatasync');
    expect(unsafeAnswers(unsynced, marks)).toHaveLength(marks.size);
  });

  it('refuses all writes after a failed fdatasync, and has what it acknowledged after a restart', async () => {
    const location = newFolder();
    // Only one fails: the syncs after it say nothing about the pages that it lost.
    const inject = ['-o', '/dev/null', '-e', 'trace=fdatasync', '-e', 'inject=fdatasync:error=EIO:when=15'];
    const server = await serve(location, { before: [...STRACE, ...inject] });
    const { client } = server;
    await client.createContainer('one');
    const answers = [];
    for (let i = 0; i < 25; i++) answers.push(await client.putBlob(`one/${i}`, Buffer.from(`content ${i}`)));
    const refusedFrom = answers.findIndex(({ status }) => status !== 201);
    expect(refusedFrom).toBeGreaterThan(0);
    for (const { status, code, body } of answers.slice(refusedFrom)) {
      expect({ status, code }).toEqual({ status: 503, code: 'ServerBusy' });
      expect(body.toString()).toContain('refused until the server is started again');
    }
    const kept = answers
      .slice(0, refusedFrom)
      .map((_, i) => String(i))
      .sort();
    expect(await client.listBlobs('one')).toEqual(kept);
    expect((await client.getBlob('one/0')).body.toString()).toBe('content 0');
    expect((await client.deleteBlob('one/0')).status).toBe(503);
    await server.kill('SIGKILL');

    expect(await checkFolder(location)).toMatchObject({ code: 0 });
    const next = await serve(location);
    expect(await next.client.listBlobs('one')).toEqual(kept);
    for (const name of kept) {
      const { body, headers } = await next.client.getBlob(`one/${name}`);
      expect(body.toString()).toBe(`content ${name}`);
      expect(headers.etag).toBe(answers[Number(name)]?.headers.etag);
    }
    expect((await next.client.putBlob('one/again', Buffer.from('x'))).status).toBe(201);
  });
});

function sdk(server: Server): BlobServiceClient {
  const found = /AccountName=([^;]+);AccountKey=([^;]+);/.exec(server.stdout());
  const credential = new StorageSharedKeyCredential(found?.[1] ?? '', found?.[2] ?? '');
  return new BlobServiceClient(`${server.origin}/${credential.accountName}`, credential, {
    retryOptions: { maxTries: 1 },
  });
}
