/** The work for an SMB message grows linearly with its size, and not with what the server holds already: files, opens, trees, sessions. */
import { ShareServiceClient, StorageSharedKeyCredential } from '@azure/storage-file-share';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COPY_CHUNKS_MAX } from '../../src/base/input-limits.ts';
import type { CreateRequest } from '../../src/smb/wire/create.ts';
import { writeCreateContexts } from '../../src/smb/wire/create-contexts.ts';
import { EmptyBody } from '../../src/smb/wire/empty.ts';
import { FileId } from '../../src/smb/wire/file-id.ts';
import { FSCTL, IoctlRequest } from '../../src/smb/wire/ioctl.ts';
import { encodeBody, SmbConnection } from '../support/smb-connection.ts';
import { closeFile, listNames, openDirectory, openFile, readFile, writeFile } from '../support/smb-files.ts';
import { account, accountKey } from '../support/test-server.ts';
import { startCountedServer } from './counted-server.mjs';

const SHARE = 'growth';
const RATIO_MAX = 2.5;
const STEPS_MAX = 2_000_000;
/** A tree of rows is a little deeper with sixteen times as many. */
const LATER_RATIO_MAX = 1.5;
const ROUNDS = 3;
const MANY = 1_600;

let server: Awaited<ReturnType<typeof startCountedServer>>;
let connection: SmbConnection;
const connections: SmbConnection[] = [];

async function connect(): Promise<SmbConnection> {
  const made = await SmbConnection.open(server.smbUrl);
  connections.push(made);
  await made.negotiate();
  await made.signIn(account, accountKey);
  await made.connectTree(SHARE);
  return made;
}

beforeAll(async () => {
  server = await startCountedServer();
  const url = `http://127.0.0.1:${server.port('file')}/${account}`;
  await new ShareServiceClient(url, new StorageSharedKeyCredential(account, accountKey)).createShare(SHARE);
  connection = await connect();
});
afterAll(() => {
  for (const each of connections) each.close();
  server.stop();
});

async function stepsOf(act: (round: number) => Promise<unknown>): Promise<number> {
  const steps: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await server.takeSteps();
    await act(round);
    steps.push(await server.takeSteps());
  }
  return steps.sort((one, other) => one - other)[ROUNDS >> 1]!;
}

const openWith = async (fields: Partial<CreateRequest>) =>
  closeFile(connection, await openFile(connection, 'f', fields));

describe('What one message holds', () => {
  const NO_FILE = 'STATUS_OBJECT_NAME_NOT_FOUND';
  const refused = (call: Promise<unknown>, status: string) => expect(call).rejects.toThrow(status);
  const rows: [title: string, n: number, act: (n: number) => Promise<unknown>][] = [
    ['letters of a name', 127, (n) => openWith({ name: 'é'.repeat(n) })],
    ['directories of a path', 120, (n) => refused(openFile(connection, `${'d\\'.repeat(n)}f`), 'STATUS_OBJECT_PATH')],
    ['stars of a pattern', 60, async (n) => refused(list('*a'.repeat(n)), 'STATUS_NO_SUCH_FILE')],
    [
      'create contexts',
      16,
      (n) => {
        const contexts = Array.from({ length: n }, (_, at) => ({
          name: Buffer.from(`ctx${at}`),
          data: Buffer.alloc(8),
        }));
        return openWith({ createContexts: writeCreateContexts(contexts as never) });
      },
    ],
    [
      'messages of a compound',
      32,
      (n) => connection.send(Array.from({ length: n }, () => ({ command: 13, body: encodeBody(EmptyBody, {}) }))),
    ],
    ['ranges of a copy', COPY_CHUNKS_MAX / 2, (n) => copyRanges(n)],
    ['bytes that are written', 32_768, (n) => withFile((fileId) => writeFile(connection, fileId, 0, Buffer.alloc(n)))],
    ['bytes that are read', 32_768, (n) => withFile((fileId) => readFile(connection, fileId, n), 65_536)],
    [
      'a name that is not there, of so many letters',
      100,
      (n) => refused(openFile(connection, 'x'.repeat(n), { createDisposition: 1 }), NO_FILE),
    ],
  ];

  it.each(rows)('%s: twice as many cost at most two and a half times as many steps', async (_title, n, act) => {
    const least = await stepsOf(() => act(1));
    const once = (await stepsOf(() => act(n))) - least;
    const twice = (await stepsOf(() => act(2 * n))) - least;
    console.log(`${least} steps for one, ${once} more for ${n}, ${twice} more for ${2 * n}`);
    expect(twice / Math.max(once, least)).toBeLessThan(RATIO_MAX);
    expect(twice).toBeLessThan(STEPS_MAX);
  });

  async function list(pattern: string): Promise<string[]> {
    const root = await openDirectory(connection, '');
    try {
      return await listNames(connection, root, pattern);
    } finally {
      await closeFile(connection, root);
    }
  }

  async function withFile(act: (fileId: FileId) => Promise<unknown>, length = 0): Promise<void> {
    const fileId = await openFile(connection, 'bytes');
    if (length > 0) await writeFile(connection, fileId, 0, Buffer.alloc(length, 'x'));
    await act(fileId);
    await closeFile(connection, fileId);
  }

  async function copyRanges(count: number): Promise<void> {
    await withFile(async (fileId) => {
      const head = Buffer.alloc(32);
      FileId.encode(fileId).copy(head);
      head.writeUInt32LE(count, 24);
      const chunks = Array.from({ length: count }, (_, at) => {
        const chunk = Buffer.alloc(24);
        chunk.writeBigUInt64LE(BigInt(at), 0);
        chunk.writeBigUInt64LE(BigInt(300 + at), 8);
        chunk.writeUInt32LE(1, 16);
        return chunk;
      });
      const answer = await connection.request(11, IoctlRequest, {
        ...{ ctlCode: FSCTL.srvCopyChunk, fileId, input: Buffer.concat([head, ...chunks]), output: Buffer.alloc(0) },
        ...{ maxInputResponse: 0, maxOutputResponse: 12, flags: 1 },
      });
      expect(answer.status).toBe('STATUS_SUCCESS');
    }, 600);
  }
});

describe('What the server holds', () => {
  /** Steps of an act after few and after many. */
  async function expectSteady(
    grow: (from: number, to: number) => Promise<void>,
    act: (round: number) => Promise<unknown>,
  ) {
    await grow(0, MANY / 16);
    const early = await stepsOf(act);
    await grow(MANY / 16, MANY);
    const late = await stepsOf(act);
    console.log(`${early} steps after ${MANY / 16}, ${late} after ${MANY}`);
    expect(late / early).toBeLessThan(LATER_RATIO_MAX);
  }
  const each = async (from: number, to: number, act: (at: number) => Promise<unknown>) => {
    for (let at = from; at < to; at++) await act(at);
  };

  it('makes a file of a directory of many no more costly to create, to open and to find', async () => {
    await closeFile(connection, await openDirectory(connection, 'many'));
    await expectSteady(
      (from, to) => each(from, to, async (at) => closeFile(connection, await openFile(connection, `many\\file-${at}`))),
      async (round) => {
        await closeFile(connection, await openFile(connection, `many\\new-${round}-${connection.nextMessageId}`));
        await closeFile(connection, await openFile(connection, 'many\\FILE-50', { createDisposition: 1 }));
        const folder = await openDirectory(connection, 'many');
        expect(await listNames(connection, folder, 'file-7')).toEqual(['file-7']);
        await closeFile(connection, folder);
      },
    );
  });

  it('makes an open beside many no more costly, of other files and of its own', async () => {
    await expectSteady(
      (from, to) => each(from, to, (at) => openFile(connection, at % 2 === 0 ? `open-${at}` : 'shared')),
      async () => closeFile(connection, await openFile(connection, 'one')),
    );
  });

  it('makes a message of one of many sessions no more costly', async () => {
    const echo = () => connection.echo();
    const early = await stepsOf(echo);
    await each(0, 60, connect);
    const late = await stepsOf(echo);
    console.log(`${early} steps with one session, ${late} with many`);
    expect(late / early).toBeLessThan(LATER_RATIO_MAX);
  });
});
