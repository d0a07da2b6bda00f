import { cpSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TableClient } from '@azure/data-tables';
import { QueueServiceClient } from '@azure/storage-queue';
import { describe, expect, it } from 'vitest';
import { check } from '../../src/index.ts';
import { decodeKey, encodeKey, type Key } from '../../src/partition/keys.ts';
import { openFiles, type RowsDatabase } from '../../src/partition/lmdb/files.ts';
import { newFolder, serve } from '../support/disposable-servers.ts';
import { checkFolder } from '../support/server-process.mjs';

interface Damage {
  readonly what: string;
  readonly act: (rows: RowsDatabase, key: (type: string) => Key) => void;
  readonly findings: RegExp[];
}

const CONTENT = 'some content';
/** In extents, in two chunks. */
const LARGE = Buffer.alloc(9 << 20, 'large ');

/** Corruptions of the file of the only extent, which holds a blob `two/large`. */
const losses: { readonly what: string; readonly act: (file: string) => void; readonly findings: RegExp[] }[] = [
  {
    what: 'a bit that has changed',
    act: (file) => flip(file, 5 << 20),
    findings: [
      /^Damaged: chunk \d+-\d+ of account devstoreaccount1 in extent \d+-\d+ at \d+: its bytes \d+ to \d+ are not what was written/,
      /^blob devstoreaccount1\/two\/large: some of its bytes are damaged$/,
    ],
  },
  {
    what: 'an end that is cut off',
    act: (file) => truncateSync(file, 8 << 20),
    findings: [/the extent ends at/, /the extent ends at/, /^blob devstoreaccount1\/two\/large: /],
  },
  {
    what: 'a file that is gone',
    act: (file) => rmSync(file),
    findings: [/extent \d+-\d+ is missing/, /is missing/, /^blob devstoreaccount1\/two\/large: /],
  },
];

/** A container `one` with a blob `blob`, damaged. */
const damages: Damage[] = [
  {
    what: 'content that is missing',
    act: (rows, key) => rows.removeSync(key('i')),
    findings: [/"b",.*"blob"\]: its content is missing/],
  },
  {
    what: 'content with a changed byte',
    act: (rows, key) => change(rows, key('i'), (value) => value.writeUInt8((value.at(-1) ?? 0) ^ 1, value.length - 1)),
    findings: [/"b",.*"blob"\]: its content does not match its checksum/],
  },
  {
    what: 'content that is cut',
    act: (rows, key) => change(rows, key('i'), (value) => value.subarray(0, -3)),
    findings: [new RegExp(`"blob"\\]: its content has ${CONTENT.length - 3} bytes, not ${CONTENT.length}`)],
  },
  {
    what: 'content without a blob',
    act: (rows, key) => rows.removeSync(key('b')),
    findings: [/"i",.*"blob"\]: content that no blob has/],
  },
  {
    what: 'what was appended to a blob, and is missing',
    act: (rows, key) => rows.removeSync(key('I')),
    findings: [new RegExp(`"b",.*"log"\\]: its content has 0 bytes, not ${CONTENT.length}`)],
  },
  {
    what: 'a container without properties',
    act: (rows, key) => rows.removeSync(key('p')),
    findings: [/"n","blob","one"\]: it has no properties/],
  },
  {
    what: 'a container without a name, and its blobs',
    act: (rows, key) => rows.removeSync(key('n')),
    findings: [/"b",.*"blob"\]: its container does not exist/, /"p",.*\]: no name leads to it/],
  },
  {
    what: 'a blob in a format that it does not know',
    act: (rows, key) => change(rows, key('b'), (value) => value.writeUInt8(99, 0)),
    findings: [/"b",.*"blob"\]: a row of format 99, which this version does not know/],
  },
  {
    what: 'a name in a format that it does not know',
    act: (rows, key) => change(rows, key('n'), (value) => value.writeUInt8(99, 0)),
    findings: [/its container does not exist/, /"n",.*"one"\]: a row of format 99/, /no name leads to it/],
  },
  {
    what: 'a blob whose row was cut',
    act: (rows, key) => change(rows, key('b'), (value) => value.subarray(0, 10)),
    findings: [/"b",.*"blob"\]: a blob record without its end/],
  },
  {
    what: 'a blob in a tier that does not exist',
    act: (rows, key) => change(rows, key('b'), (value) => withTier(value, 'Warm')),
    findings: [/"b",.*"blob"\]: a tier that does not exist/],
  },
  {
    what: 'a row of an unknown kind',
    act: (rows, key) => rows.putSync(encodeKey([decodeKey(key('b'))[0]!, 'Y']), store(1n, Buffer.from('\x01{}'))),
    findings: [/"Y"\]: a row of a kind that this version does not know/],
  },
  {
    what: 'a key that cannot be read',
    act: (rows) => rows.putSync('\xfe\xfe' as Key, store(1n, Buffer.from('\x01{}'))),
    findings: [/fefe: /],
  },
];

describe('holdfast check', () => {
  it('finds every corrupt row and names it', async () => {
    const sound = await newData();
    for (const { what, act, findings } of damages) {
      const location = copyOf(sound);
      await damage(location, act);
      const before = readFileSync(join(location, 'rows', 'data.mdb'));
      const found = (await check(location)).findings;
      expect({ what, found }).toEqual({ what, found: findings.map((finding) => expect.stringMatching(finding)) });
      // A check writes nothing.
      expect(readFileSync(join(location, 'rows', 'data.mdb')).equals(before)).toBe(true);
    }
  });

  it('finds corrupt bytes, and names their blob', async () => {
    const sound = await newData();
    expect((await check(sound)).findings).toEqual([]);
    for (const { what, act, findings } of losses) {
      const location = copyOf(sound);
      const [extent] = readdirSync(join(location, 'extents'));
      act(join(location, 'extents', extent!));
      const found = (await check(location)).findings;
      expect({ what, found }).toEqual({ what, found: findings.map((finding) => expect.stringMatching(finding)) });
    }
  });

  it('counts what is stored, names accounts, and prints its own help', async () => {
    const location = newFolder();
    const { client, stdout, kill } = await serve(location);
    const connectionString = /connection string {2}(\S+)/.exec(stdout())?.[1] ?? '';
    await client.createContainer('one');
    await client.putBlob('one/blob', Buffer.from(CONTENT));
    const queue = QueueServiceClient.fromConnectionString(connectionString).getQueueClient('queue');
    await queue.create();
    for (const text of ['a', 'b', 'c']) await queue.sendMessage(text);
    const table = TableClient.fromConnectionString(connectionString, 'table', { allowInsecureConnection: true });
    await table.createTable();
    for (const rowKey of ['a', 'b']) await table.createEntity({ partitionKey: 'p', rowKey });
    await kill('SIGTERM');
    const sound = await check(location);
    const counts = { containers: 1, blobs: 1, bytes: 12, queues: 1, messages: 3, tables: 1, entities: 2, findings: [] };
    expect(sound).toMatchObject(counts);
    const text =
      '1 container, 1 blob with 12 bytes, 1 queue with 3 messages, 1 table with 2 entities, 0 shares with 0 files.';
    expect(sound.notes).toEqual([`${sound.rows} rows: ${text}`]);
    await damage(location, (rows, key) => rows.removeSync(key('#')));
    const [finding] = (await check(location)).findings;
    expect(finding).toMatch(/^queue devstoreaccount1\/queue: it counts \d messages and has 3$/);
    await damage(location, (rows, key) => rows.removeSync(key('p')));
    expect((await check(location)).findings[0]).toMatch(/^row \["devstoreaccount1","n",.*\]: it has no properties$/);
  });

  it('works beside a running server that writes', async () => {
    const location = newFolder();
    const { client } = await serve(location);
    await client.createContainer('one');
    let isOver = false;
    const writing = (async () => {
      for (let i = 0; !isOver; i++) {
        const body = Buffer.alloc(i % 5 === 0 ? 1 << 20 : i * 10, 'x');
        expect((await client.putBlob(`one/${i % 50}`, body)).status).toBe(201);
        if (i % 3 === 0) expect((await client.deleteBlob(`one/${i % 50}`)).status).toBe(202);
      }
    })();
    for (let i = 0; i < 3; i++) {
      const { code, text } = await checkFolder(location);
      expect({ code, text }).toMatchObject({ code: 0, text: expect.stringContaining('Everything is in order.') });
    }
    isOver = true;
    await writing;
  });
});

async function newData(): Promise<string> {
  const location = newFolder();
  const { client, kill } = await serve(location);
  await client.createContainer('one');
  await client.putBlob('one/blob', Buffer.from(CONTENT));
  await client.createContainer('two');
  await client.putBlob('two/blob-2', Buffer.from(CONTENT));
  await client.putBlob('two/large', LARGE);
  await client.putBlob('two/log', Buffer.alloc(0), { 'x-ms-blob-type': 'AppendBlob' });
  await client.send('PUT', '/two/log?comp=appendblock', { body: Buffer.from(CONTENT) });
  await kill('SIGTERM');
  return location;
}

function copyOf(location: string): string {
  const copy = newFolder();
  cpSync(location, copy, { recursive: true });
  return copy;
}

async function damage(location: string, act: Damage['act']): Promise<void> {
  const { environment, rows } = openFiles(join(location, 'rows'));
  // Of the first container and its blob.
  const keys = [...(rows.getKeys({ start: '' as Key }) as Iterable<Key>)];
  act(rows, (type) => keys.find((key) => decodeKey(key)[1] === type)!);
  await environment.close();
}

/** Lets `edit` change the value of a row, in place or by another one; its version stays. */
function change(rows: RowsDatabase, key: Key, edit: (value: Buffer) => Buffer | unknown): void {
  const stored = Buffer.from((rows as unknown as { getBinary(key: Key): Buffer }).getBinary(key));
  const edited = edit(stored.subarray(8));
  rows.putSync(key, Buffer.isBuffer(edited) ? Buffer.concat([stored.subarray(0, 8), edited]) : stored);
}

/** The tier is the sixteenth line of a blob record. */
function withTier(value: Buffer, tier: string): Buffer {
  const lines = value.toString('latin1').split('\n').slice(0, -1);
  while (lines.length < 15) lines.push('');
  return Buffer.from(`${[...lines, tier, '1'].join('\n')}\n`, 'latin1');
}

function flip(file: string, at: number): void {
  const bytes = readFileSync(file);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  writeFileSync(file, bytes);
}

/** As a row lies in LMDB: its version, then its value. */
function store(version: bigint, value: Uint8Array): Buffer {
  const stored = Buffer.concat([Buffer.alloc(8), value]);
  stored.writeBigUInt64BE(version);
  return stored;
}
