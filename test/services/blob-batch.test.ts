import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { ContentStore } from '../../src/content/content.ts';
import { encodeKey } from '../../src/partition/keys.ts';
import { openLmdb } from '../../src/partition/lmdb/engine.ts';
import { openPartition } from '../../src/partition/transact.ts';
import { partRequest } from '../../src/rest/blob/batch-request.ts';
import { blobOperations } from '../../src/rest/blob/operations.ts';
import type { Request, RunPart } from '../../src/rest/operation.ts';
import { compileRouter } from '../../src/rest/router.ts';
import { putAccount } from '../../src/services/common/account-rows.ts';
import type { Storage } from '../../src/services/common/storage.ts';

const ACCOUNT = 7n;
const BLOBS = 256;
const router = compileRouter(blobOperations);

/** A storage in a folder, and the number of records in its write-ahead log: one for each group of commits. */
async function openCounted() {
  const location = await mkdtemp(join(tmpdir(), 'holdfast-batch-'));
  const log = { records: 0 };
  const engine = await openLmdb({ location, beforeWrite: () => log.records++ });
  onTestFinished(async () => {
    await engine.close();
    await rm(location, { recursive: true, force: true });
  });
  const partition = openPartition(engine);
  await partition.transact(encodeKey(['account']), async (tx) =>
    putAccount(tx, { id: ACCOUNT, name: 'seven', keys: ['a2V5'], from: 'command' }),
  );
  const storage: Storage = { partition, account: ACCOUNT, content: {} as ContentStore, sweeper: { wake() {} } };
  return { storage, log };
}

const account: Request = {
  ...{ id: '01234567-89ab-4def-8123-456789abcdef', method: 'POST', rawPath: '/', rawQuery: '', account: 'seven' },
  ...{ secondary: false, base: '', readsHosts: true, secure: false, container: '', item: '', query: {} },
  ...{ headers: { host: 'seven.localhost' }, rawHeaders: [], version: '2025-07-05' },
};

it('The parts of a Blob Batch share commits', async () => {
  const { storage, log } = await openCounted();
  const runPart: RunPart<Storage> = async (row, part) =>
    row.reply(await row.run(storage, row.read(part), () => storage, runPart), part);
  const send = async (method: string, url: string, headers: Record<string, string> = {}, body?: string) => {
    const request = partRequest({ method, url, headers }, account, 0);
    const row = router.match(request);
    const input = row.read(request);
    if (body !== undefined) await row.readBody(input, Buffer.from(body), request);
    return row.reply(await row.run(storage, input, () => storage, runPart), request);
  };
  await send('PUT', '/box?restype=container');
  const urls = Array.from({ length: BLOBS }, (_, at) => `/box/blob-${at}`);
  const blob = { 'x-ms-blob-type': 'BlockBlob', 'content-length': '1' };
  await Promise.all(urls.map((url) => send('PUT', url, blob, 'x')));

  const parts = urls.map((url, at) => `--b\r\nContent-ID: ${at}\r\n\r\nDELETE ${url} HTTP/1.1\r\n\r\n`);
  const before = log.records;
  const type = { 'content-type': 'multipart/mixed; boundary=b' };
  const { body } = await send('POST', '/?comp=batch', type, `${parts.join('')}--b--`);
  const text = Buffer.concat(body as Uint8Array[]).toString();
  expect(text.match(/^HTTP\/1\.1 202 /gm)).toHaveLength(BLOBS);
  expect(log.records - before).toBeLessThanOrEqual(BLOBS / 8);
});
