import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { BlobServiceClient, StorageSharedKeyCredential } from '@azure/storage-blob';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type Client, newFolder, noStrace, type Server, serve } from '../support/disposable-servers.ts';
import { checkFolder } from '../support/server-process.mjs';
import { type Call, callsOf, type Upload, unsafeAnswers, unsafeNames, unsafeUploads } from './strace.ts';

const SEQUENTIAL = 15;
const CONCURRENT = 48;
const CHUNK_BYTES = 8 << 20;
const STRACE = ['strace', '-D', '-f', '-qq', '-yy', '-s', '160'];
/** Where a mark lies anywhere in a group of commits. */
const WHOLE = ['-s', '1000000'];
const CALLS = 'openat,read,readv,recvfrom,recvmsg,fdatasync,fsync,msync,pwrite64,pwritev,write,writev,sendmsg,sendto';

describe('Durability', () => {
  beforeEach(({ skip }) => skip(noStrace !== undefined, noStrace));

  it('answers no request before the files are durable that the next start needs', async () => {
    const folder = newFolder();
    const trace = join(folder, 'trace');
    const files = `${CALLS},mkdir,mkdirat,rename,renameat,renameat2,link,linkat`;
    const location = join(folder, 'not', 'yet', 'there');
    const before = [...STRACE, '-o', trace, '-e', `trace=${files}`];
    const server = await serve(location, { before, flags: ['--https', 'auto'] });
    await server.kill('SIGKILL');

    const calls = callsOf(readFileSync(trace, 'utf8'));
    const { entry: ready } = calls.find(isReady) as Call;
    expect(unsafeNames(calls, folder, ready)).toEqual([]);
    // Each name in it is found out in a trace without any sync.
    const unsynced = calls.filter(({ name }) => name !== 'fsync');
    const found = unsafeNames(unsynced, folder, ready).map((line) => line.split(':')[0]?.replace('not/yet/there/', ''));
    const certificates = ['issuer-key.pem', 'issuer.pem', 'ca.pem', 'key.pem', 'certificate.pem'].map(
      (name) => `tls/${name}`,
    );
    const folders = ['not', 'not/yet', 'not/yet/there', 'rows', 'extents', 'tls'];
    const logs = ['rows/wal-0', 'rows/wal-1'];
    expect(new Set(found)).toEqual(new Set([...folders, 'holdfast.json', ...logs, ...certificates]));
    // Files that are not renamed into place are synced by their writers, or not needed.
    const written = calls.filter(
      (call) => call.name === 'openat' && /O_CREAT/.test(call.text) && call.text.includes(location),
    );
    const names = written.map(({ text }) => /"([^"]*)"/.exec(text)?.[1]?.slice(location.length + 1) ?? '');
    const others = names.filter((name) => !/^rows\/|\.new$|^extents\//.test(name));
    expect(new Set(others)).toEqual(new Set(['holdfast.lock', 'admin.json']));
  });

  it('answers no write before the fdatasync of its commit', async () => {
    const folder = newFolder();
    const trace = join(folder, 'trace');
    const before = [...STRACE, ...WHOLE, '-o', trace, '-e', `trace=${CALLS}`];
    const server = await serve(join(folder, 'data'), { before });
    const container = sdk(server).getContainerClient('one');
    await container.create();

    const marks = new Map<string, string>();
    const upload = async (i: number): Promise<void> => {
      const mark = `mark-${i}-of-this-blob`;
      marks.set(`/devstoreaccount1/one/blob-${i}`, mark);
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

  it('answers no upload before its bytes are durable, and then the commit that names them', async () => {
    const folder = newFolder();
    const trace = join(folder, 'trace');
    // Extents are small, so that several are made.
    const server = await serve(join(folder, 'data'), {
      before: [...STRACE, '-o', trace, '-e', `trace=${CALLS}`],
      imports: [new URL('../crash/in-a-hurry.mjs', import.meta.url).href],
    });
    const { client } = server;
    await client.createContainer('one');
    const uploads = await putAll(client);
    expect(await server.kill('SIGTERM')).toEqual({ code: 0, signal: null });

    const calls = callsOf(readFileSync(trace, 'utf8'));
    expect(calls.filter(({ name, text }) => name === 'openat' && /extents.*O_EXCL/.test(text)).length).toBeGreaterThan(
      2,
    );
    expect(unsafeUploads(calls, uploads)).toEqual([]);
    // The same trace without one kind of sync is found out, for every upload that it concerns.
    const without = (sync: RegExp) =>
      calls.filter(({ name, text }) => !/^f(data)?sync$/.test(name) || !sync.test(text));
    const withBytes = uploads.filter(({ chunks }) => chunks.length > 0).length;
    expect(unsafeUploads(without(/[/]extents[/]/), uploads)).toHaveLength(withBytes);
    expect(unsafeUploads(without(/[/]extents>/), uploads)).toHaveLength(withBytes);
    expect(unsafeUploads(without(/[/]wal-\d/), uploads)).toHaveLength(uploads.length);
  });

  it('refuses all writes after a failed fdatasync, and has what it acknowledged after a restart', async () => {
    const location = newFolder();
    // Only one of each thread fails: the syncs after it say nothing about the pages that it lost.
    const inject = ['-o', '/dev/null', '-e', 'trace=fdatasync', '-e', 'inject=fdatasync:error=EIO:when=6'];
    const server = await serve(location, { before: [...STRACE, ...inject] });
    const { client } = server;
    const ready = async () => (await fetch(new URL('/health/ready', server.origin))).status;
    await client.createContainer('one');
    expect(await ready()).toBe(200);
    const answers = [];
    for (let i = 0; i < 40; i++) answers.push(await client.putBlob(`one/${i}`, Buffer.from(`content ${i}`)));
    const refusedFrom = answers.findIndex(({ status }) => status !== 201);
    expect(refusedFrom).toBeGreaterThan(0);
    // The outcome of a commit that was in the group is unknown.
    expect([500, 503]).toContain(answers[refusedFrom]?.status);
    for (const { status, code, body } of answers.slice(refusedFrom + 1)) {
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
    expect(await ready()).toBe(503);
    await server.kill('SIGKILL');

    expect(await checkFolder(location)).toMatchObject({ code: 0 });
    const next = await serve(location);
    const unknown = String(refusedFrom);
    expect((await next.client.listBlobs('one')).filter((name) => name !== unknown)).toEqual(kept);
    for (const name of kept) {
      const { body, headers } = await next.client.getBlob(`one/${name}`);
      expect(body.toString()).toBe(`content ${name}`);
      expect(headers.etag).toBe(answers[Number(name)]?.headers.etag);
    }
    expect((await next.client.putBlob('one/again', Buffer.from('x'))).status).toBe(201);
  });

  it('takes no upload whose fdatasync failed, writes no more to that extent, and goes on with another', async () => {
    const location = newFolder();
    const server = await serve(location);
    const { client } = server;
    await client.createContainer('one');
    const contentOf = (name: string) => Buffer.alloc(100_000, name);
    const put = (name: string) => client.putBlob(`one/${name}`, contentOf(name));
    const before = await put('before');
    expect(before.status).toBe(201);
    const [extent, ...others] = readdirSync(join(location, 'extents'));
    expect(others).toEqual([]);

    await failSyncs(server.pid, join(location, 'extents', extent!));
    expect((await put('failed')).status).toBe(500);
    const size = statSync(join(location, 'extents', extent!)).size;
    // Syncs of the first extent would still fail.
    const after = await put('after');
    expect(after.status).toBe(201);
    expect(readdirSync(join(location, 'extents'))).toHaveLength(2);
    expect(statSync(join(location, 'extents', extent!)).size).toBe(size);
    await server.kill('SIGKILL');

    expect(await checkFolder(location)).toMatchObject({ code: 0 });
    const next = await serve(location);
    expect(await next.client.listBlobs('one')).toEqual(['after', 'before']);
    for (const [name, { headers }] of Object.entries({ before, after })) {
      const found = await next.client.getBlob(`one/${name}`);
      expect(found.headers.etag).toBe(headers.etag);
      expect(found.body.equals(contentOf(name))).toBe(true);
    }
  });
});

/** Waits for the line that reports it. */
function isReady({ name, text }: Call): boolean {
  return name.startsWith('write') && text.includes('is successfully listening');
}

/** Blobs, blocks and lists of them: one after another, so that each has a commit of its own, then all at one time. */
async function putAll(client: Client): Promise<Upload[]> {
  const uploads: Upload[] = [];
  async function put(name: string): Promise<void> {
    const [small, large] = [300_000, 12 << 20].map((length, at) => markedBytes(`${name}-${at}`, length));
    const id = Buffer.from(name).toString('base64');
    const account = '/devstoreaccount1';
    const block = `comp=block&blockid=${encodeURIComponent(id)}`;
    uploads.push({ target: `${account}/one/small-${name}`, chunks: small!.chunks });
    expect((await client.putBlob(`one/small-${name}`, small!.bytes)).status).toBe(201);
    uploads.push({ target: `${account}/one/blocks-${name}?${block}`, chunks: large!.chunks });
    expect((await client.putBlock(`one/blocks-${name}`, id, large!.bytes)).status).toBe(201);
    uploads.push({ target: `${account}/one/blocks-${name}?comp=blocklist`, chunks: [] });
    expect((await client.putBlockList(`one/blocks-${name}`, `<Latest>${id}</Latest>`)).status).toBe(201);
  }
  for (const name of ['a', 'b', 'c']) await put(name);
  await Promise.all(['d', 'e', 'f', 'g'].map(put));
  return uploads;
}

/** Each chunk of 8 MiB begins with a mark. */
function markedBytes(name: string, length: number) {
  const bytes = Buffer.alloc(length, '.');
  const chunks: { mark: string; length: number }[] = [];
  for (let at = 0; at < length; at += CHUNK_BYTES) {
    const mark = `mark-${name}-${at}-of-this-chunk`;
    bytes.write(mark, at);
    chunks.push({ mark, length: Math.min(CHUNK_BYTES, length - at) });
  }
  return { bytes, chunks };
}

/** From now on, of this file. */
async function failSyncs(pid: number, file: string): Promise<void> {
  const inject = ['-e', 'trace=fdatasync', '-e', 'inject=fdatasync:error=EIO', '-P', file];
  const strace = spawn('strace', ['-f', '-o', '/dev/null', ...inject, '-p', String(pid)]);
  onTestFinished(() => void strace.kill('SIGKILL'));
  let said = '';
  strace.stderr.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  // With all threads that the process has then: the line has their number.
  await expect.poll(() => said, { timeout: 10_000 }).toMatch(/Process \d+ attached/);
}

function sdk(server: Server): BlobServiceClient {
  const found = /AccountName=([^;]+);AccountKey=([^;]+);/.exec(server.stdout());
  const credential = new StorageSharedKeyCredential(found?.[1] ?? '', found?.[2] ?? '');
  return new BlobServiceClient(`${server.origin}/${credential.accountName}`, credential, {
    retryOptions: { maxTries: 1 },
  });
}
