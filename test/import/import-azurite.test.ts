/** `holdfast import --from-azurite`: what Microsoft's SDKs read from the folder's new server is what they read from Azurite. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { BlobServiceClient, type ContainerClient } from '@azure/storage-blob';
import { QueueServiceClient } from '@azure/storage-queue';
import { check, type HoldfastServer, start } from 'holdfast';
import { afterEach, describe, expect, it } from 'vitest';
import { azuriteMain } from '../../scripts/azurite.mjs';
import { newFolder, root } from '../support/repository-copy.ts';
import { accountKey } from '../support/test-server.ts';
import { fill, readEverything } from './azurite-data.ts';

/** Written by Azurite 3.37.0 and by `readEverything`; HOLDFAST_RECORD_AZURITE=1 writes both anew. */
const recorded = join(root, 'test', 'import', 'recorded');

let child: ChildProcess | undefined;
let server: HoldfastServer | undefined;
afterEach(async () => {
  child?.kill('SIGKILL');
  await server?.stop();
  child = undefined;
  server = undefined;
});

async function runImport(...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const program = join(root, 'dist', 'bin', 'holdfast.js');
  try {
    return { code: 0, ...(await promisify(execFile)(process.execPath, [program, 'import', ...words])) };
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string };
  }
}

async function serve(location: string): Promise<string> {
  server = await start({ blobPort: 0, location });
  return server.connectionString;
}

/** A copy of the recorded folder, whose files are old enough that nobody writes to them. */
function copyOfRecorded(): string {
  const folder = join(newFolder(), 'azurite');
  cpSync(join(recorded, 'folder'), folder, { recursive: true });
  for (const name of ['blob', 'queue', 'table']) age(join(folder, `__azurite_db_${name}__.json`));
  return folder;
}

function age(file: string): void {
  utimesSync(file, new Date('2024-01-01'), new Date('2024-01-01'));
}

const NEVER_EXPIRES = '"expirationTime":"9999-12-31T23:59:59.999Z"';
const EXPIRED = '"expirationTime":"2024-01-01T00:00:00.000Z"';

/** Changes a database of a copy, as JSON. */
function edit(folder: string, name: string, change: (text: string) => string): void {
  const file = join(folder, `__azurite_db_${name}__.json`);
  const text = readFileSync(file, 'utf8');
  expect(change(text)).not.toBe(text);
  writeFileSync(file, change(text));
  age(file);
}

/** @param snapshot 1 is the first one of the blob; 0 is the blob itself */
// biome-ignore lint/suspicious/noExplicitAny: a document of Azurite's database
function editBlob(folder: string, name: string, change: (document: any) => void, snapshot = 0): void {
  edit(folder, 'blob', (text) => {
    const database = JSON.parse(text);
    const { data } = database.collections.find((each: { name: string }) => each.name === '$BLOBS_COLLECTION$');
    const states = data.filter((each: { name: string }) => each.name === name);
    const inOrder = states.toSorted((one: { snapshot: string }, other: { snapshot: string }) =>
      one.snapshot < other.snapshot ? -1 : 1,
    );
    change(inOrder[snapshot]);
    return JSON.stringify(database);
  });
}

describe('The import of a folder of Azurite', () => {
  it('takes containers, blobs of all types, snapshots, blocks, queues, messages, tables and entities, and says what it leaves out', async () => {
    const location = join(newFolder(), 'data');
    const { code, stdout } = await runImport('--from-azurite', copyOfRecorded(), '--location', location, '--json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      taken: [
        { what: 'containers', count: 3 },
        { what: 'snapshots', count: 9 },
        { what: 'block blobs', count: 8 },
        { what: 'uncommitted blocks', count: 2 },
        { what: 'append blobs', count: 2 },
        { what: 'page blobs', count: 2 },
        { what: 'infinite leases of blobs', count: 1 },
        { what: 'infinite leases of containers', count: 1 },
        { what: 'queues', count: 2 },
        { what: 'messages', count: 3 },
        { what: 'tables', count: 2 },
        { what: 'entities', count: 131 },
      ],
      leftOut: [],
      failures: [],
      failed: 0,
      complete: true,
      newAccounts: [],
    });
    expect((await check(location)).findings).toEqual([]);
    expect(JSON.parse(JSON.stringify(await readEverything(await serve(location))))).toEqual(
      JSON.parse(readFileSync(join(recorded, 'expected.json'), 'utf8')),
    );
  });

  it('prints what it took and what it could not, and ends with 2 if something is missing', async () => {
    const from = copyOfRecorded();
    edit(from, 'queue', (text) =>
      text.replace(
        '"name":"$SERVICES_COLLECTION$","data":[',
        '"name":"$SERVICES_COLLECTION$","data":[{"accountName":"devstoreaccount1","cors":[]}',
      ),
    );
    const location = join(newFolder(), 'data');
    const { code, stdout } = await runImport('--from-azurite', from, '--location', location);
    expect(code).toBe(2);
    expect(stdout).toContain(`Imported from ${from} to ${location}:\n  containers`);
    expect(stdout).toMatch(/block blobs +8\n/);
    expect(stdout).toMatch(/Not imported, since this version cannot:\n {2}properties of the queue service +1\n/);
    expect(stdout).toContain('What Azurite writes to its folder from now on is not imported.');
  });

  it('does not miss what is no longer in force', async () => {
    const from = copyOfRecorded();
    edit(from, 'queue', (text) => text.replace(NEVER_EXPIRES, EXPIRED));
    editBlob(from, 'leased', ({ properties }) => {
      properties.leaseDuration = 'fixed';
    });
    const { code, stdout } = await runImport('--from-azurite', from, '--location', join(newFolder(), 'data'), '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      leftOut: [
        { what: 'other leases of blobs, which have ended', count: 1 },
        { what: 'messages that have expired', count: 1 },
      ],
      complete: true,
    });
    expect(code).toBe(0);
  });

  it('refuses a destination that has one of the names, and changes nothing there', async () => {
    const location = join(newFolder(), 'data');
    const jobs = QueueServiceClient.fromConnectionString(await serve(location)).getQueueClient('jobs');
    await jobs.create();
    await server!.stop();
    const { code, stderr } = await runImport('--from-azurite', copyOfRecorded(), '--location', location);
    expect(code).toBe(1);
    expect(stderr).toContain('The destination has these already: queue devstoreaccount1/jobs. Nothing was imported');
    const after = BlobServiceClient.fromConnectionString(await serve(location));
    expect(await after.getContainerClient('photos').exists()).toBe(false);
  });

  it('adds to a destination that has other names', async () => {
    const location = join(newFolder(), 'data');
    const other = BlobServiceClient.fromConnectionString(await serve(location)).getContainerClient('other');
    await other.create();
    await server!.stop();
    expect((await runImport('--from-azurite', copyOfRecorded(), '--location', location)).code).toBe(0);
    const after = BlobServiceClient.fromConnectionString(await serve(location));
    expect(await after.getContainerClient('other').exists()).toBe(true);
    expect(await after.getContainerClient('photos').exists()).toBe(true);
  });

  it('refuses a destination that a server uses', async () => {
    const location = join(newFolder(), 'data');
    await serve(location);
    const { code, stderr } = await runImport('--from-azurite', copyOfRecorded(), '--location', location);
    expect(code).toBe(1);
    expect(stderr).toContain(location);
  });

  it('keeps the times of messages, and leaves out those that have expired', async () => {
    const from = copyOfRecorded();
    edit(from, 'queue', (text) =>
      text
        .replace(NEVER_EXPIRES, EXPIRED)
        .replace(/"timeNextVisible":\d+(?!.*"timeNextVisible")/, `"timeNextVisible":${Date.UTC(2050, 0, 1)}`)
        .replace(/"dequeueCount":0(?!.*"dequeueCount":0)/, '"dequeueCount":3'),
    );
    const location = join(newFolder(), 'data');
    const { code, stdout } = await runImport('--from-azurite', from, '--location', location);
    expect(code).toBe(0);
    expect(stdout).toMatch(/messages +2\n/);
    expect(stdout).toMatch(/messages that have expired +1\n/);
    server = await start({ blobPort: 0, location, testClock: true });
    const jobs = QueueServiceClient.fromConnectionString(server.connectionString).getQueueClient('jobs');
    const peek = async () => (await jobs.peekMessages({ numberOfMessages: 32 })).peekedMessageItems;
    expect((await peek()).map(({ messageText }) => messageText)).toEqual(['second']);
    expect((await jobs.getProperties()).approximateMessagesCount).toBe(2);
    await server.clock.advance((Date.UTC(2050, 0, 2) - Date.now()) / 1_000);
    expect((await peek()).map(({ dequeueCount }) => dequeueCount)).toEqual([0, 3]);
  });

  it('makes accounts that the destination does not have, with new keys', async () => {
    const from = copyOfRecorded();
    for (const name of ['blob', 'queue', 'table'])
      edit(from, name, (text) => text.replaceAll('devstoreaccount1', 'another'));
    const location = join(newFolder(), 'data');
    const { code, stdout } = await runImport('--from-azurite', from, '--location', location);
    expect(code).toBe(0);
    expect(stdout).toContain('New keys were made for another');
    server = await start({ blobPort: 0, location, accounts: [{ name: 'another', keys: [accountKey] }] });
    const service = BlobServiceClient.fromConnectionString(server.connectionString);
    expect(await service.getContainerClient('photos').getBlobClient('large').exists()).toBe(true);
  });

  it('takes the rest when the bytes of some are missing, or a document is not what it should be', async () => {
    const from = copyOfRecorded();
    rmSync(join(from, '__queuestorage__'), { recursive: true });
    edit(from, 'table', (text) => text.replace('"Edm.Int64"', '"Edm.Nonsense"'));
    edit(from, 'blob', (text) =>
      text
        .replace('"name":"empty","metadata"', '"name":"E!","metadata"')
        .replace('"accessTier":"Cool"', '"accessTier":"Warm"'),
    );
    const { code, stdout } = await runImport('--from-azurite', from, '--location', join(newFolder(), 'data'));
    expect(code).toBe(2);
    expect(stdout).toMatch(/block blobs +7\n/);
    expect(stdout).toMatch(/entities +130\n/);
    expect(stdout).toContain('block blobs: photos/a/hello ü %41.txt: InvalidHeaderValue');
    expect(stdout.match(/messages: jobs\/.*: the file __queuestorage__\/\S+ is missing/g)).toHaveLength(3);
    expect(stdout).toContain("entities: People(p'1,r): ");
  });

  it('seals an append blob that was sealed, and puts pages of any range', async () => {
    const from = copyOfRecorded();
    const seal = ({ properties }: { properties: { isSealed: boolean } }) => {
      properties.isSealed = true;
    };
    editBlob(from, 'append', seal);
    // The next snapshot has the same bytes, and is not sealed.
    editBlob(from, 'append', seal, 1);
    const large = 9 << 20;
    editBlob(from, 'pages', (document) => {
      const bytes = { id: 'large', offset: 512, count: large };
      document.pageRangesInOrder = [{ start: 1_024, end: 1_024 + large - 1, persistency: bytes }];
    });
    const content = randomBytes(512 + large);
    writeFileSync(join(from, '__blobstorage__', 'large'), content);
    const location = join(newFolder(), 'data');
    expect((await runImport('--from-azurite', from, '--location', location)).code).toBe(0);
    const photos = BlobServiceClient.fromConnectionString(await serve(location)).getContainerClient('photos');
    const append = photos.getAppendBlobClient('append');
    expect((await append.getProperties()).isSealed).toBe(true);
    const [first, second] = await snapshotsOf(photos, 'append');
    expect((await append.withSnapshot(first!).getProperties()).isSealed).toBe(true);
    expect((await append.withSnapshot(second!).getProperties()).isSealed).toBeFalsy();
    await expect(append.appendBlock('x', 1)).rejects.toThrow(/sealed/);
    const pages = await photos.getPageBlobClient('pages').downloadToBuffer(0, 1_024 + large + 512);
    expect(pages.equals(Buffer.concat([Buffer.alloc(1_024), content.subarray(512), Buffer.alloc(512)]))).toBe(true);
  });

  it('shares the bytes of snapshots with their page blob', async () => {
    const location = join(newFolder(), 'data');
    expect((await runImport('--from-azurite', copyOfRecorded(), '--location', location)).code).toBe(0);
    const photos = BlobServiceClient.fromConnectionString(await serve(location)).getContainerClient('photos');
    const pages = photos.getPageBlobClient('pages');
    const [first, second] = await snapshotsOf(photos, 'pages');
    const difference = await pages.withSnapshot(second!).getPageRangesDiff(0, 2 ** 40, first!);
    expect(difference.pageRange).toEqual([
      { offset: 512, count: 1_023 },
      { offset: 2 ** 30, count: 511 },
    ]);
    expect(difference.clearRange).toEqual([{ offset: 2 ** 20 + 512, count: 1_023 }]);
  });

  it('leaves no append or page blob that lacks bytes, and says which blob has the state of its newest snapshot', async () => {
    const from = copyOfRecorded();
    editBlob(from, 'append', ({ committedBlocksInOrder }) => {
      committedBlocksInOrder.at(-1).persistency.id = 'lost';
    });
    editBlob(from, 'append-empty', (document) => {
      document.committedBlocksInOrder = [{ name: '', persistency: { id: 'lost', offset: 0, count: 1 } }];
    });
    editBlob(from, 'pages', ({ pageRangesInOrder }) => {
      pageRangesInOrder.at(-1).persistency.offset = 10 ** 9;
    });
    editBlob(from, 'pages-empty', ({ properties }) => {
      properties.contentLength = 'long';
    });
    editBlob(from, 'snapped', ({ persistency }) => {
      persistency.id = 'lost';
    });
    const location = join(newFolder(), 'data');
    const { code, stdout } = await runImport('--from-azurite', from, '--location', location, '--json');
    expect(code).toBe(2);
    expect(JSON.parse(stdout).failures.toSorted()).toEqual([
      'append blobs: photos/append, which has the state of its newest snapshot: the file __blobstorage__/lost is missing',
      'append blobs: photos/append-empty: the file __blobstorage__/lost is missing',
      'block blobs: photos/snapped, which has the state of its newest snapshot: the file __blobstorage__/lost is missing',
      expect.stringMatching(
        /^page blobs: photos\/pages, which has the state of its newest snapshot: the file __blobstorage__\/\S+ is cut off$/,
      ),
      'page blobs: photos/pages-empty: its contentLength is not a length',
    ]);
    expect((await check(location)).findings).toEqual([]);
    const photos = BlobServiceClient.fromConnectionString(await serve(location)).getContainerClient('photos');
    for (const name of ['append-empty', 'pages-empty'])
      expect(await photos.getBlobClient(name).exists(), name).toBe(false);
    expect((await photos.getBlobClient('snapped').downloadToBuffer()).toString()).toBe('by blocks');
    expect((await photos.getBlobClient('append').downloadToBuffer()).toString()).toBe('again');
    expect((await photos.getBlobClient('pages').getProperties()).contentLength).toBe(2 ** 38);
    expect((await photos.getBlobClient('pages').downloadToBuffer(0, 512)).equals(Buffer.alloc(512, 1))).toBe(true);
  });

  it('takes the snapshots after one that it cannot take, and the blob', async () => {
    const from = copyOfRecorded();
    for (const [name, snapshot] of [
      ['append', 3],
      ['pages', 2],
    ] as const)
      editBlob(
        from,
        name,
        ({ committedBlocksInOrder, pageRangesInOrder }) => {
          (committedBlocksInOrder ?? pageRangesInOrder).at(-1).persistency.id = 'lost';
        },
        snapshot,
      );
    const location = join(newFolder(), 'data');
    const { code, stdout } = await runImport('--from-azurite', from, '--location', location, '--json');
    expect(code).toBe(2);
    expect(JSON.parse(stdout).failures.toSorted()).toEqual([
      expect.stringMatching(/^snapshots: photos\/append\?snapshot=\S+: the file __blobstorage__\/lost is missing$/),
      expect.stringMatching(/^snapshots: photos\/pages\?snapshot=\S+: the file __blobstorage__\/lost is missing$/),
    ]);
    const expected = JSON.parse(readFileSync(join(recorded, 'expected.json'), 'utf8'));
    const { blobs } = expected.containers.photos;
    for (const [name, missing] of [
      ['append', 2],
      ['pages', 1],
    ] as const) {
      const snapshots = Object.keys(blobs)
        .filter((each) => each.startsWith(`${name} `))
        .toSorted();
      delete blobs[snapshots[missing]!];
    }
    expect(JSON.parse(JSON.stringify(await readEverything(await serve(location))))).toEqual(expected);
  });

  it.each([
    ['blob', 3_000],
    ['table', 20_000],
    ['blob_extent', 100],
  ])('refuses a database %s that is cut off after %i bytes, before it writes anything', async (name, bytes) => {
    const from = copyOfRecorded();
    const file = join(from, `__azurite_db_${name}__.json`);
    truncateSync(file, bytes);
    age(file);
    const location = join(newFolder(), 'data');
    const { code, stderr } = await runImport('--from-azurite', from, '--location', location);
    expect(code).toBe(1);
    expect(stderr).toBe(`holdfast: ${file} is damaged: it is cut off after ${bytes} bytes. Nothing was imported.\n`);
    expect(existsSync(location)).toBe(false);
  });

  it('refuses a folder to which Azurite writes', async () => {
    const from = copyOfRecorded();
    const file = join(from, '__azurite_db_queue__.json');
    const text = readFileSync(file, 'utf8');
    const writing = setInterval(() => writeFileSync(file, `${text} `), 200);
    const { code, stderr } = await runImport('--from-azurite', from, '--location', join(newFolder(), 'data'));
    clearInterval(writing);
    expect(code).toBe(1);
    expect(stderr).toContain(`Azurite has just written to ${from}: stop it`);
  });

  it.each([
    ['a folder without data', (folder: string) => ['--from-azurite', folder], 'There is no data of Azurite in'],
    ['no folder', () => [], 'import needs the folder of an Azurite'],
    [
      'the folder of Azurite as its destination',
      (folder: string) => ['--from-azurite', folder, '--location', folder],
      'name another folder',
    ],
  ])('refuses %s in one line', async (_, words, fault) => {
    const { code, stderr } = await runImport(...words(newFolder()));
    expect(code).toBe(1);
    expect(stderr).toContain(fault);
    expect(stderr.trim()).not.toContain('\n');
  });

  it('gives what the SDKs read from the Azurite that wrote it', { timeout: 120_000 }, async (context) => {
    if (!existsSync(azuriteMain)) return context.skip('Azurite is not installed in bench/: npm test installs it');
    const isRecording = process.env.HOLDFAST_RECORD_AZURITE !== undefined;
    const from = join(newFolder(), 'azurite');
    const connectionString = await startAzurite(from);
    await fill(connectionString, { lasting: isRecording });
    // The message that was received is visible again, and the shortest one has expired.
    if (!isRecording) await sleep(2_500);
    const expected = await readEverything(connectionString);
    if (existsSync('/proc/self/fd')) {
      const { code, stderr } = await runImport('--from-azurite', from, '--location', join(newFolder(), 'data'));
      expect(stderr).toContain(`Process ${child!.pid} uses ${from}. Stop Azurite`);
      expect(code).toBe(1);
    }
    child!.kill('SIGTERM');
    await once(child!, 'exit');
    if (isRecording) {
      rmSync(recorded, { recursive: true, force: true });
      cpSync(from, join(recorded, 'folder'), { recursive: true });
      for (const name of readdirSync(recorded, { recursive: true, encoding: 'utf8' }).filter((file) =>
        file.endsWith('.json'),
      )) {
        const text = readFileSync(join(recorded, name), 'utf8');
        writeFileSync(join(recorded, name), text.replaceAll(from, '/data'));
      }
      writeFileSync(join(recorded, 'expected.json'), `${JSON.stringify(expected, undefined, 1)}\n`);
    }
    const location = join(newFolder(), 'data');
    const { code, stdout } = await runImport('--from-azurite', from, '--location', location);
    expect(stdout).toContain('Imported from');
    expect(code).toBe(0);
    const imported = await serve(location);
    expect(await readEverything(imported)).toEqual(expected);
    if (isRecording) return;
    const timed = QueueServiceClient.fromConnectionString(imported).getQueueClient('timed');
    expect((await timed.getProperties()).approximateMessagesCount).toBe(3);
    expect((await timed.peekMessages({ numberOfMessages: 32 })).peekedMessageItems).toHaveLength(2);
  });
});

async function snapshotsOf(container: ContainerClient, prefix: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { snapshot } of container.listBlobsFlat({ prefix, includeSnapshots: true }))
    if (snapshot) found.push(snapshot);
  return found;
}

async function startAzurite(location: string): Promise<string> {
  const ports = await Promise.all([freePort(), freePort(), freePort()]);
  const flags = ['blob', 'queue', 'table'].flatMap((service, i) => [`--${service}Port`, String(ports[i])]);
  const words = ['--silent', '--skipApiVersionCheck', '--disableTelemetry', '--location', location, ...flags];
  child = spawn(process.execPath, [azuriteMain, ...words], { stdio: 'ignore' });
  const endpoints = ['Blob', 'Queue', 'Table'].map(
    (name, i) => `${name}Endpoint=http://127.0.0.1:${ports[i]}/devstoreaccount1;`,
  );
  const connectionString = `DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=${accountKey};${endpoints.join('')}`;
  for (const port of ports) while (!(await answers(port))) await sleep(100);
  return connectionString;
}

async function answers(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/`).then(
    () => true,
    () => false,
  );
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const listening = createServer().listen(0, '127.0.0.1', () => {
      const { port } = listening.address() as { port: number };
      listening.close(() => resolve(port));
    });
  });
}
