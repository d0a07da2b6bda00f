/** A seed: what its file names is created where it is missing, and everything else stays. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TableClient } from '@azure/data-tables';
import { BlobServiceClient } from '@azure/storage-blob';
import { type ShareClient, ShareServiceClient } from '@azure/storage-file-share';
import { QueueServiceClient } from '@azure/storage-queue';
import { type HoldfastServer, StartError, type StartOptions, start } from 'holdfast';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { newFolder } from '../support/repository-copy.ts';
import { onEveryEngine } from '../support/test-server.ts';

const SEED = `
containers:
  photos:
    access: blob
    metadata: { owner: me }
    folder: files
    blobs:
      hello.txt: Hello
      pixel: { base64: AAEC, contentType: image/png, tier: Cool, metadata: { size: "1" }, tags: { "a b": x/1 }, cacheControl: no-cache }
  copies:
    blobs:
      page: { file: files/index.html }
queues:
  jobs:
    metadata: { team: b }
    messages:
      - one
      - { text: two, ttlSeconds: -1 }
      - { text: later, visibilitySeconds: 3600 }
      - three
  functions: { encoding: base64, messages: [hello] }
  empty:
tables:
  People:
    entities:
      - { PartitionKey: a, RowKey: "1", Age: 3, Height: 2.0, Big: 12345678901234567, Big@odata.type: Edm.Int64 }
      - { PartitionKey: a, RowKey: "2", Born: "2001-02-03T00:00:00Z", Born@odata.type: Edm.DateTime, Nobody: null }
shares:
  docs:
    quota: 7
    tier: Hot
    metadata: { team: c }
    folder: files
    files:
      notes/today.txt: Rain
      notes/raw: { base64: AAEC, contentType: image/png, metadata: { size: "1" } }
accounts:
  second:
    keys: [c2Vjb25k]
    containers: { hers: { blobs: { note: x } } }
`;

let server: HoldfastServer | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

async function restart(options: StartOptions): Promise<ReturnType<typeof clientsOf>> {
  await server?.stop();
  server = undefined;
  server = await start({ blobPort: 0, ...options });
  return clientsOf(server.connectionString);
}

function clientsOf(connectionString: string) {
  const blobs = BlobServiceClient.fromConnectionString(connectionString);
  return {
    blob: (container: string, name: string) => blobs.getContainerClient(container).getBlockBlobClient(name),
    container: (name: string) => blobs.getContainerClient(name),
    queue: (name: string) => QueueServiceClient.fromConnectionString(connectionString).getQueueClient(name),
    share: (name: string) => ShareServiceClient.fromConnectionString(connectionString).getShareClient(name),
    people: TableClient.fromConnectionString(connectionString, 'People', { allowInsecureConnection: true }),
  };
}

/** The text of a file in a share. */
async function textOf(share: ShareClient, path: string): Promise<string> {
  return (await share.rootDirectoryClient.getFileClient(path).downloadToBuffer()).toString();
}

function seedFolder(text = SEED, name = 'seed.yaml'): { readonly folder: string; readonly seed: string } {
  const folder = newFolder();
  mkdirSync(join(folder, 'files', 'deep', 'er'), { recursive: true });
  writeFileSync(join(folder, 'files', 'index.html'), '<p>');
  writeFileSync(join(folder, 'files', 'deep', 'er', 'large'), Buffer.alloc(300_000, 'abc'));
  writeFileSync(join(folder, name), text);
  return { folder, seed: join(folder, name) };
}

describe('A seed', () => {
  it('creates accounts, containers with blobs, queues with messages, tables with entities, and shares with files', async () => {
    const { seed } = seedFolder();
    const { container, blob, queue, people, share } = await restart({ inMemory: true, seed });

    expect(await container('photos').getProperties()).toMatchObject({
      metadata: { owner: 'me' },
      blobPublicAccess: 'blob',
    });
    expect((await blob('photos', 'hello.txt').downloadToBuffer()).toString()).toBe('Hello');
    expect(await blob('photos', 'pixel').getProperties()).toMatchObject({
      ...{ contentLength: 3, contentType: 'image/png', cacheControl: 'no-cache' },
      ...{ accessTier: 'Cool', metadata: { size: '1' } },
    });
    expect((await blob('photos', 'pixel').getTags()).tags).toEqual({ 'a b': 'x/1' });
    expect(await blob('photos', 'index.html').getProperties()).toMatchObject({ contentType: 'text/html' });
    expect(await blob('copies', 'page').getProperties()).toMatchObject({ contentLength: 3, contentType: 'text/html' });
    const large = await blob('photos', 'deep/er/large').downloadToBuffer();
    expect(large.equals(Buffer.alloc(300_000, 'abc'))).toBe(true);

    expect((await queue('jobs').getProperties()).metadata).toEqual({ team: 'b' });
    const { receivedMessageItems } = await queue('jobs').receiveMessages({ numberOfMessages: 10 });
    expect(receivedMessageItems.map(({ messageText }) => messageText)).toEqual(['one', 'two', 'three']);
    expect(receivedMessageItems[1]!.expiresOn.getFullYear()).toBe(9999);
    const { peekedMessageItems } = await queue('functions').peekMessages();
    expect(peekedMessageItems.map(({ messageText }) => messageText)).toEqual(['aGVsbG8=']);
    expect((await queue('empty').getProperties()).approximateMessagesCount).toBe(0);

    const first = await people.getEntity('a', '1');
    expect(first).toMatchObject({ Age: 3, Height: 2, Big: 12345678901234567n });
    const bodies: (string | null | undefined)[] = [];
    await people.getEntity('a', '1', { onResponse: ({ bodyAsText }) => bodies.push(bodyAsText) });
    expect(bodies[0]).toContain('"Height":2.0');
    expect((await people.getEntity('a', '2')).Born).toEqual(new Date('2001-02-03T00:00:00Z'));
    expect(await people.getEntity('a', '2')).not.toHaveProperty('Nobody');

    const docs = share('docs');
    const { quota, accessTier, metadata } = await docs.getProperties();
    expect([quota, accessTier, metadata]).toEqual([7, 'Hot', { team: 'c' }]);
    expect(await textOf(docs, 'notes/today.txt')).toBe('Rain');
    expect(await docs.rootDirectoryClient.getFileClient('notes/raw').getProperties()).toMatchObject({
      ...{ contentLength: 3, contentType: 'image/png', metadata: { size: '1' } },
    });
    expect(await textOf(docs, 'index.html')).toBe('<p>');
    expect(await textOf(docs, 'deep/er/large')).toBe('abc'.repeat(100_000));

    const second = server!.connectionString
      .replaceAll('devstoreaccount1', 'second')
      .replace(/AccountKey=[^;]*/, 'AccountKey=c2Vjb25k');
    expect((await clientsOf(second).blob('hers', 'note').downloadToBuffer()).toString()).toBe('x');
  });

  it('changes nothing at a second start: neither what was changed, nor messages that were taken', async () => {
    const { folder, seed } = seedFolder();
    const location = join(folder, 'data');
    const before = await restart({ location, seed });
    await before.blob('photos', 'hello.txt').upload('changed', 7);
    await before.container('photos').setMetadata({ owner: 'you' });
    await before.share('docs').rootDirectoryClient.getFileClient('notes/today.txt').create(0);
    await before.share('docs').setProperties({ quotaInGB: 9 });
    await before.people.updateEntity({ partitionKey: 'a', rowKey: '1', Age: 4 }, 'Merge');
    const taken = await before.queue('jobs').receiveMessages({ numberOfMessages: 2 });
    for (const { messageId, popReceipt } of taken.receivedMessageItems)
      await before.queue('jobs').deleteMessage(messageId, popReceipt);
    const { etag } = await before.blob('photos', 'pixel').getProperties();

    const after = await restart({ location, seed });
    expect((await after.blob('photos', 'hello.txt').downloadToBuffer()).toString()).toBe('changed');
    expect((await after.container('photos').getProperties()).metadata).toEqual({ owner: 'you' });
    expect(await textOf(after.share('docs'), 'notes/today.txt')).toBe('');
    expect((await after.share('docs').getProperties()).quota).toBe(9);
    expect((await after.people.getEntity('a', '1')).Age).toBe(4);
    expect((await after.queue('jobs').getProperties()).approximateMessagesCount).toBe(2);
    expect((await after.blob('photos', 'pixel').getProperties()).etag).toBe(etag);
  });

  it('adds what the file has gained, and creates again what was deleted', async () => {
    const { folder, seed } = seedFolder();
    const location = join(folder, 'data');
    const before = await restart({ location, seed });
    await before.blob('photos', 'hello.txt').delete();
    writeFileSync(seed, SEED.replace('      hello.txt: Hello', '      hello.txt: Hello\n      new.txt: New'));
    const after = await restart({ location, seed });
    expect(await after.blob('photos', 'hello.txt').exists()).toBe(true);
    expect(await after.blob('photos', 'new.txt').exists()).toBe(true);
  });

  it('writes a long file whole, and keeps files that have other names', async () => {
    const { folder, seed } = seedFolder('shares: { docs: { folder: files } }');
    const bytes = Buffer.alloc(9_000_001, 'long file');
    writeFileSync(join(folder, 'files', 'long'), bytes);
    const location = join(folder, 'data');
    const before = await restart({ location, seed: { shares: { docs: {} } } });
    await before.share('docs').rootDirectoryClient.getFileClient('long.incomplete').uploadData(Buffer.from('mine'));
    const { share } = await restart({ location, seed });
    const long = share('docs').rootDirectoryClient.getFileClient('long');
    expect((await long.downloadToBuffer()).equals(bytes)).toBe(true);
    const mine = share('docs').rootDirectoryClient.getFileClient('long.incomplete');
    expect((await mine.downloadToBuffer()).toString()).toBe('mine');
    const names: string[] = [];
    for await (const { name } of share('docs').rootDirectoryClient.listFilesAndDirectories()) names.push(name);
    expect(names.filter((name) => name.startsWith('.'))).toEqual([]);
  });

  it('may be JSON, or the value of the option', async () => {
    const content = { tables: { People: { entities: [{ PartitionKey: 'a', RowKey: '1', Age: 3, Big: 1.5 }] } } };
    const { seed } = seedFolder(JSON.stringify(content), 'seed.json');
    for (const given of [seed, content]) {
      const { people } = await restart({ inMemory: true, seed: given });
      expect(await people.getEntity('a', '1')).toMatchObject({ Age: 3, Big: 1.5 });
    }
  });

  /** `lines`: how far the line that is named is from the changed one. */
  const faults: [what: string, from: string, to: string, lines: number, fault: string][] = [
    ['a value out of its choices', 'access: blob', 'access: private', 0, 'photos.access: it is blob or container'],
    ['an unknown setting', 'access: blob', 'acces: blob', 0, 'there is no such setting here'],
    ['a number instead of a text', 'owner: me', 'owner: 3', 0, 'put it in quotes'],
    ['a line break in metadata', 'owner: me', 'owner: "a\\nb"', 0, 'printable ASCII'],
    ['a folder that is not there', 'folder: files', 'folder: filez', 0, 'cannot be read (ENOENT)'],
    ['bytes that are not Base64', 'base64: AAEC', 'base64: A', 0, 'it is not Base64'],
    ['two contents', 'base64: AAEC', 'base64: AAEC, text: x', 0, 'one of text, base64, file'],
    ['a file that is not there', 'file: files/index.html', 'file: nothing', 0, 'there is no file'],
    ['a tier that there is not', 'tier: Cool', 'tier: Warm', 0, 'pixel.tier: it is Hot or Cool or Cold or Archive'],
    ['a tag that Azure refuses', 'x/1', 'x!1', 0, 'pixel.tags.a b: tags have letters, digits'],
    ['metadata that Azure refuses', 'team: b', 'the-team: b', 0, 'jobs.metadata.the-team: a name of metadata has'],
    ['metadata twice', 'owner: me', 'owner: me, Owner: me', 0, 'photos.metadata.Owner: a name of metadata'],
    ['too much metadata', 'size: "1"', `size: "${'1'.repeat(9_000)}"`, 0, 'pixel.metadata.size: metadata has at most'],
    [
      'a name of a container that Azure refuses',
      '  photos:',
      '  Photos:',
      0,
      'containers.Photos: the name of a container',
    ],
    ['a name of a queue that Azure refuses', '  empty:', '  an_empty:', 0, 'queues.an_empty: the name of a queue has'],
    ['a name of a table that Azure refuses', '  People:', '  My-people:', 0, 'tables.My-people: the name of a table'],
    ['a blob without a name', 'hello.txt:', '"":', 0, 'the name of a blob has 1 to 1,024 characters'],
    ['a file that is a folder', 'file: files/index.html', 'file: files', 0, 'is not a file'],
    [
      'a message that is never visible',
      'ttlSeconds: -1',
      'ttlSeconds: 0',
      0,
      'messages[2].ttlSeconds: it is at least 1',
    ],
    [
      'a message that expires first',
      'Seconds: 3600',
      'Seconds: 700000',
      0,
      'visibilitySeconds: it is from 0 to 604800',
    ],
    ['an anchor that there is not', '  empty:', '  empty: *anchor', 0, 'there is no &anchor before *anchor'],
    ['a message without a text', 'text: two, ', '', 0, 'a message has a text'],
    ['a list as a property', 'Age: 3', 'Age: [3]', 0, 'entities[1].Age: a property is'],
    ['a type that a value is not of', 'Edm.Int64', 'Edm.Guid', 0, 'entities[1].Big: it is not a value of Edm.Guid'],
    ['a name of a property that Azure refuses', 'Age: 3', 'an age: 3', 0, 'entities[1].an age: PropertyNameInvalid'],
    ['a key of an entity that is a number', 'RowKey: "1"', 'RowKey: 1', 0, 'entities[1].RowKey: it is a text'],
    ['a key that Azure refuses', 'RowKey: "1"', 'RowKey: a/b', 0, 'entities[1].RowKey: OutOfRangeInput'],
    ['an entity without a key', 'RowKey: "1", ', '', 0, 'entities[1]: an entity has a RowKey'],
    ['an entity twice', 'RowKey: "2"', 'RowKey: "1"', 0, 'an entity with the same PartitionKey and RowKey'],
    ['a key that is not Base64', '[c2Vjb25k]', '["!"]', 0, 'key 1 is not base64'],
    ['an account without keys', '    keys: [c2Vjb25k]', '    queues: {}', -1, 'give it keys'],
    ['a share of no size', 'quota: 7', 'quota: 0', 0, 'quota: it is a number of GiB'],
    ['a name that no share can have', '  docs:', '  Docs:', 0, 'the name of a share has 3 to 63'],
    ['a tier that a share cannot have', 'tier: Hot', 'tier: Cold', 0, 'it is TransactionOptimized or Hot or Cool'],
    ['a path that no file can have', 'notes/today.txt', '"notes/a|b"', 0, 'the name of a file is a path'],
    ['a key that is there twice', 'RowKey: "1"', 'PartitionKey: "1"', 0, 'Map keys must be unique'],
    ['text that is not YAML', 'owner: me }', 'owner: me', 1, 'must be sufficiently indented'],
  ];
  it.each(faults)('with %s names the file and the line', async (_, from, to, lines, fault) => {
    expect(SEED).toContain(from);
    const line = SEED.slice(0, SEED.indexOf(from)).split('\n').length + lines;
    const { folder, seed } = seedFolder(SEED.replace(from, to));
    const location = join(folder, 'data');
    const failed = await start({ blobPort: 0, location, seed }).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(StartError);
    expect((failed as Error).message).toContain(`${seed}:${line}: `);
    expect((failed as Error).message).toContain(fault);
    expect((failed as Error).message).not.toContain('\n');
    // Nothing holds the folder any more.
    await restart({ location });
  });

  it('that is wrong in its last line creates nothing', async () => {
    const { folder, seed } = seedFolder(`${SEED}    queues: { A_B: }\n`);
    const location = join(folder, 'data');
    await expect(start({ blobPort: 0, location, seed })).rejects.toThrow(
      'accounts.second.queues.A_B: the name of a queue',
    );
    const { container } = await restart({ location });
    expect(await container('photos').exists()).toBe(false);
  });

  it('that is not UTF-8 is refused', async () => {
    const { seed } = seedFolder('');
    writeFileSync(seed, Buffer.from(`\ufeff${SEED}`, 'utf16le'));
    await expect(start({ inMemory: true, blobPort: 0, seed })).rejects.toThrow(`The seed ${seed} is not text in UTF-8`);
  });

  it('that is missing is named', async () => {
    await expect(start({ inMemory: true, blobPort: 0, seed: 'no-such.yaml' })).rejects.toThrow(
      'The seed no-such.yaml cannot be read (ENOENT).',
    );
  });

  it('given as the option names the place of a fault', async () => {
    const seed = { queues: { jobs: { messages: [{ text: 1 }] } } };
    await expect(start({ inMemory: true, blobPort: 0, seed })).rejects.toThrow(
      'seed: queues.jobs.messages[1].text: it is a text',
    );
  });
});

describe('Servers on one store with the same seed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-seed-'));
  const seed = join(folder, 'seed.json');
  writeFileSync(seed, '{"queues":{"seeded":{"messages":["one","two"]}},"containers":{"seeded":{"blobs":{"a":"x"}}}}');
  afterAll(() => rmSync(folder, { recursive: true }));

  onEveryEngine(
    (running) => {
      it('create each thing once between them', async () => {
        const { queues, service } = running;
        const queue = queues.getQueueClient('seeded');
        expect((await queue.getProperties()).approximateMessagesCount).toBe(2);
        const { peekedMessageItems } = await queue.peekMessages({ numberOfMessages: 10 });
        expect(peekedMessageItems.map(({ messageText }) => messageText)).toEqual(['one', 'two']);
        expect(await service.getContainerClient('seeded').getBlobClient('a').exists()).toBe(true);
      });
    },
    { start: { seed } },
  );
});
