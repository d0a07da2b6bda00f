import { FileSASPermissions } from '@azure/storage-file-share';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fileOperations } from '../../src/rest/file/operations.ts';
import { READ_ONLY } from '../../src/rules/file/attributes.ts';
import {
  ALL,
  DELETE,
  formatSmbAccess,
  judgeOperation,
  READ,
  type SmbAccess,
  WRITE,
} from '../../src/rules/file/share-mode.ts';
import { createDirectory } from '../../src/services/file/directories.ts';
import { createFile } from '../../src/services/file/files.ts';
import { closeHandle, setDeletePending } from '../../src/services/file/handles.ts';
import { type AskedOpen, type HandleServer, openAs, startHandleServer } from '../support/handle-server.ts';
import { refusal } from '../support/test-server.ts';
import {
  COUNTS_AS,
  LEASED_BESIDE,
  OPENED_BESIDE_LEASE,
  READ_ONLY_REFUSES,
  SHARING_VIOLATIONS,
  type ShareMode,
} from '../truth-tables/share-modes.ts';

const SHARE = 'held';
const LENGTH = 512;

let server: HandleServer;
let files = 0;
beforeAll(async () => {
  server = await startHandleServer();
  await server.files.getShareClient(SHARE).create();
  await newFile('source');
  sourceUrl = await readableUrl('source');
});
afterAll(() => server.stop());

async function newFile(path = `file${files++}`, attributes?: number): Promise<string> {
  const input = { share: SHARE, path, leaseId: undefined, metadata: [], content: {}, length: LENGTH };
  await createFile(server.storage, { ...input, smb: attributes === undefined ? {} : { attributes } });
  return path;
}

const open = (path: string, asked: AskedOpen = {}) => openAs(server.storage, SHARE, path, asked);

/** The requests of the operations on a file or directory, by their names. */
const range = { 'x-ms-range': `bytes=0-${LENGTH - 1}` };
const source = () => ({ 'x-ms-copy-source': `${server.url}/${SHARE}/source` });
/** With a credential of its own, as Put Range from URL wants it. */
const readableUrl = (path: string) => {
  const client = server.files.getShareClient(SHARE).rootDirectoryClient.getFileClient(path);
  const permissions = FileSASPermissions.parse('r');
  return client.generateSasUrl({ permissions, expiresOn: new Date(Date.now() + 3_600_000) });
};
const FROM_URL = { ...range, 'x-ms-source-range': 'bytes=0-511', 'x-ms-write': 'update' };
let sourceUrl: string;
interface Sent {
  readonly headers?: Record<string, string>;
  readonly body?: Buffer;
}
type AskedRequest = readonly [method: string, query: string, sent?: () => Sent];
const onFiles: Readonly<Record<string, AskedRequest>> = {
  'Get File Properties': ['HEAD', ''],
  'Get File Metadata': ['GET', '?comp=metadata'],
  'Get File': ['GET', ''],
  'List Ranges': ['GET', '?comp=rangelist'],
  'Put Range': [
    'PUT',
    '?comp=range',
    () => ({ headers: { ...range, 'x-ms-write': 'update' }, body: Buffer.alloc(LENGTH, 1) }),
  ],
  'Put Range (clear)': ['PUT', '?comp=range', () => ({ headers: { ...range, 'x-ms-write': 'clear' } })],
  'Put Range From URL': ['PUT', '?comp=range', () => ({ headers: { ...FROM_URL, 'x-ms-copy-source': sourceUrl } })],
  'Set File Properties': ['PUT', '?comp=properties', () => ({ headers: { 'x-ms-content-type': 'text/plain' } })],
  'Set File Metadata': ['PUT', '?comp=metadata', () => ({ headers: { 'x-ms-meta-a': 'b' } })],
  'Create File': ['PUT', '', () => ({ headers: { 'x-ms-type': 'file', 'x-ms-content-length': '1' } })],
  'Copy File': ['PUT', '', () => ({ headers: source() })],
  'Lease File': [
    'PUT',
    '?comp=lease',
    () => ({ headers: { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': '-1' } }),
  ],
  'Delete File': ['DELETE', ''],
};
const ROOT_LIST = `?restype=directory&comp=list`;

/** The status and the code of the refusal, or nothing. */
async function run(operation: string, path: string): Promise<string> {
  if (operation === 'List Directories and Files') return ask('GET', ROOT_LIST);
  if (operation === 'Rename File') {
    const headers = { 'x-ms-file-rename-source': `${server.url}/${SHARE}/${path}` };
    return ask('PUT', `/renamed-${path}?comp=rename`, { headers });
  }
  const [method, query, sent] = onFiles[operation]!;
  return ask(method, `/${path}${query}`, sent?.());
}

async function ask(method: string, target: string, sent: Sent = {}): Promise<string> {
  const { status, code } = await server.send(method, `/${SHARE}${target}`, sent);
  return status < 300 ? '' : `${status} ${code}`;
}

const VIOLATION = '409 SharingViolation';
const PENDING = '409 SMBDeletePending';

/** A table of Microsoft beside what the server answers: printed, and without a cell that differs. */
class Cells {
  readonly #title: string;
  readonly #lines: string[] = [];
  readonly #wrong: string[] = [];

  constructor(title: string) {
    this.#title = title;
  }

  add(cell: string, expected: string, seen: string): void {
    const line = `${cell}: ${expected || 'proceeds'} / ${seen || 'proceeds'}`;
    this.#lines.push(line);
    if (seen !== expected) this.#wrong.push(line);
  }

  verify(): void {
    console.log(`${this.#title}: expected / seen\n${this.#lines.join('\n')}`);
    expect(this.#wrong).toEqual([]);
  }
}

const name = (bits: number): ShareMode =>
  ((
    [
      [READ, 'R'],
      [WRITE, 'W'],
      [DELETE, 'D'],
    ] as const
  )
    .filter(([bit]) => bits & bit)
    .map(([, letter]) => letter)
    .join('') as ShareMode) || 'None';
const BITS = [0, 1, 2, 3, 4, 5, 6, 7];

const onNodes = fileOperations.filter(({ smbAccess, isImplemented }) => isImplemented && smbAccess !== undefined);
const columnOf = (operation: string): SmbAccess => onNodes.find((row) => row.name === operation)!.smbAccess!;

describe('The access that an operation counts as', () => {
  it('is in the row of each operation on a file or directory, and of no other', () => {
    const isOnNode = ({ shape, query }: (typeof fileOperations)[number]) =>
      shape === '/{share}/{path}' || query?.restype === 'directory' || /handles$/.test(String(query?.comp));
    const rows = fileOperations.filter(({ isImplemented, methods }) => isImplemented && !methods.includes('OPTIONS'));
    for (const row of rows) expect([row.name, row.smbAccess !== undefined]).toEqual([row.name, isOnNode(row)]);
  });

  it('is the one of the table of Microsoft', () => {
    const cells = new Cells('operation');
    for (const [operation, expected] of Object.entries(COUNTS_AS))
      cells.add(operation, expected, formatSmbAccess(columnOf(operation)));
    cells.verify();
    expect(Object.keys(COUNTS_AS)).toEqual(Object.keys(SHARING_VIOLATIONS));
  });

  it('refuses it as the tables of Microsoft say, share mode by share mode', async () => {
    const cells = new Cells('operation beside an open with Read and a share mode');
    for (const [operation, refusing] of Object.entries(SHARING_VIOLATIONS))
      for (const shareMode of BITS) {
        const path = await newFile();
        await open(path, { access: READ, shareMode });
        const expected = refusing.includes(name(shareMode)) ? VIOLATION : '';
        cells.add(`${operation} beside ${name(shareMode)}`, expected, await run(operation, path));
      }
    cells.verify();
  }, 120_000);

  it('is the one that the services check, whatever access and share mode are open', async () => {
    const wrong: string[] = [];
    for (const operation of Object.keys(SHARING_VIOLATIONS))
      for (const access of BITS)
        for (const shareMode of BITS) {
          const path = await newFile();
          const { handle } = await open(path, { access, shareMode });
          const verdict = judgeOperation(columnOf(operation), [{ access, share: shareMode }]);
          const seen = await run(operation, path);
          if (seen !== (verdict === 'proceed' ? '' : `409 ${verdict}`))
            wrong.push(`${operation} beside ${access}/${shareMode}: ${seen}`);
          await closeHandle(server.storage, handle);
        }
    expect(wrong).toEqual([]);
  }, 300_000);

  it('is Read on the source of a copy', async () => {
    const from = await newFile();
    const { handle } = await open(from, { access: READ, shareMode: WRITE | DELETE });
    const headers = { 'x-ms-copy-source': `${server.url}/${SHARE}/${from}` };
    const writing = { ...FROM_URL, 'x-ms-copy-source': await readableUrl(from) };
    const to = await newFile();
    // The code that every refusal of a source has, with the status of its own.
    const refused = { status: 409, code: 'CannotVerifyCopySource' };
    expect(await server.send('PUT', `/${SHARE}/copied`, { headers })).toMatchObject(refused);
    expect(await server.send('PUT', `/${SHARE}/${to}?comp=range`, { headers: writing })).toMatchObject(refused);
    await closeHandle(server.storage, handle);
    expect(await ask('PUT', '/copied', { headers })).toBe('');
  });

  it('of directories is Delete if they are deleted or renamed', async () => {
    const directory = async (shareMode?: number) => {
      const path = `directory${files++}`;
      await createDirectory(server.storage, { share: SHARE, path, metadata: [], smb: {} });
      if (shareMode !== undefined) await open(path, { access: READ, shareMode });
      return path;
    };
    const rename = (path: string) =>
      ask('PUT', `/to-${path}?restype=directory&comp=rename`, {
        headers: { 'x-ms-file-rename-source': `${server.url}/${SHARE}/${path}` },
      });
    for (const shareMode of BITS) {
      expect(await ask('DELETE', `/${await directory(shareMode)}?restype=directory`)).toBe(VIOLATION);
      expect(await rename(await directory(shareMode))).toBe(shareMode & DELETE ? '' : VIOLATION);
      const path = await directory(shareMode);
      for (const query of ['', '&comp=metadata', '&comp=list'])
        expect(await ask('GET', `/${path}?restype=directory${query}`)).toBe('');
      for (const query of ['&comp=metadata', '&comp=properties'])
        expect(await ask('PUT', `/${path}?restype=directory${query}`)).toBe('');
    }
  });
});

describe('Lease File', () => {
  it('is acquired beside handles that only read, or read attributes', async () => {
    for (const access of BITS) {
      const path = await newFile();
      await open(path, { access });
      expect([name(access), await run('Lease File', path)]).toEqual([
        name(access),
        LEASED_BESIDE.includes(name(access)) ? '' : VIOLATION,
      ]);
    }
  });

  it('excludes opens that write or delete until it is released or broken', async () => {
    for (const action of ['release', 'break']) {
      const path = await newFile();
      const lease = server.files.getShareClient(SHARE).rootDirectoryClient.getFileClient(path).getShareLeaseClient();
      await lease.acquireLease();
      for (const access of BITS)
        for (const shareMode of BITS) {
          const seen = await open(path, { access, shareMode }).then(
            ({ handle }) => closeHandle(server.storage, handle),
            (error: { code: string }) => error.code,
          );
          const isOpened = OPENED_BESIDE_LEASE.includes(name(access));
          expect([name(access), name(shareMode), seen]).toEqual([
            name(access),
            name(shareMode),
            isOpened ? undefined : 'SharingViolation',
          ]);
        }
      await (action === 'break' ? lease.breakLease() : lease.releaseLease());
      await open(path, { access: ALL });
    }
  });
});

describe('A file that SMB has marked for deletion', () => {
  const listed = async (path: string) => {
    const names = [];
    for await (const entry of server.files.getShareClient(SHARE).rootDirectoryClient.listFilesAndDirectories())
      names.push(entry.name);
    return names.includes(path);
  };

  it('answers every operation with SMBDeletePending, and is not listed, until the last handle is closed', async () => {
    const cells = new Cells('operation on a file that is marked for deletion');
    const path = await newFile();
    const { handle } = await open(path, { access: DELETE });
    const other = await open(path, { access: 0, shareMode: 0 });
    await setDeletePending(server.storage, handle, true);
    for (const closed of [undefined, handle]) {
      if (closed) await closeHandle(server.storage, closed);
      // The answer to HEAD has the code in a header.
      for (const operation of [...Object.keys(onFiles), 'Rename File'])
        cells.add(`${operation}, ${closed ? 'one handle of two' : 'two handles'}`, PENDING, await run(operation, path));
      cells.add('List Directories and Files', 'not listed', (await listed(path)) ? 'listed' : 'not listed');
    }
    cells.verify();
    await closeHandle(server.storage, other.handle);
    for (const operation of ['Get File', 'Get File Properties', 'Delete File'])
      expect(await run(operation, path)).toBe('404 ResourceNotFound');
    expect(await run('Create File', path)).toBe('');
  });

  it('is there again if the mark is taken back', async () => {
    const path = await newFile();
    const { handle } = await open(path, { access: DELETE });
    await setDeletePending(server.storage, handle, true);
    expect(await listed(path)).toBe(false);
    await setDeletePending(server.storage, handle, false);
    expect(await listed(path)).toBe(true);
    await closeHandle(server.storage, handle);
    expect(await run('Get File', path)).toBe('');
  });

  it('leaves its place in a page to others', async () => {
    const share = server.files.getShareClient('pages');
    await share.create();
    const handles = [];
    for (let i = 0; i < 9; i++) {
      const input = {
        share: 'pages',
        path: `f${i}`,
        leaseId: undefined,
        metadata: [],
        content: {},
        length: 0,
        smb: {},
      };
      await createFile(server.storage, input);
      if (i % 3 === 2) continue;
      const { handle } = await openAs(server.storage, 'pages', `f${i}`, { access: DELETE });
      await setDeletePending(server.storage, handle, true);
      handles.push(handle);
    }
    for (const maxPageSize of [1, 2, 3, 100]) {
      const names = [];
      for await (const page of share.rootDirectoryClient.listFilesAndDirectories().byPage({ maxPageSize })) {
        expect(page.segment.fileItems.length).toBeLessThanOrEqual(maxPageSize);
        names.push(...page.segment.fileItems.map((file) => file.name));
      }
      expect(names).toEqual(['f2', 'f5', 'f8']);
    }
    for (const handle of handles) await closeHandle(server.storage, handle);
  });
});

it('A read-only file refuses what changes it with 409 ReadOnlyAttribute', async () => {
  const cells = new Cells('operation on a read-only file');
  for (const operation of Object.keys(SHARING_VIOLATIONS)) {
    const path = await newFile(undefined, READ_ONLY);
    const expected = READ_ONLY_REFUSES.includes(operation) ? '409 ReadOnlyAttribute' : '';
    cells.add(operation, expected, await run(operation, path));
  }
  cells.verify();
});

describe('List Handles and Force Close Handles', () => {
  async function newTree() {
    const share = server.files.getShareClient(`tree${files++}`);
    await share.create();
    const directory = share.getDirectoryClient('docs');
    await directory.create();
    const file = directory.getFileClient('report.txt');
    await file.create(1);
    return {
      share,
      directory,
      file,
      open: (path: string, asked?: AskedOpen) => openAs(server.storage, share.name, path, asked),
    };
  }

  it('tell everything of a handle', async () => {
    const { file, directory, open: openIn } = await newTree();
    const { handle } = await openIn('docs/report.txt', { access: READ | WRITE });
    const { fileId, fileParentId } = await file.getProperties();
    const [found, ...more] = (await file.listHandles().byPage().next()).value!.handleList!;
    expect(more).toEqual([]);
    expect(found).toMatchObject({
      handleId: handle.id.toString(),
      path: 'docs/report.txt',
      fileId,
      parentId: fileParentId,
      sessionId: '9479483953728458157',
      clientIp: '192.0.2.7:50445',
      clientName: 'desk',
      accessRightList: ['Read', 'Write'],
    });
    expect(Math.abs(found!.openTime!.getTime() - Date.now())).toBeLessThan(3_600_000);
    expect((await directory.getProperties()).fileId).toBe(found!.parentId);
  });

  it('tell the rights from 2023-01-03 on, and the name of the client from 2024-02-04 on', async () => {
    const { share, open: openIn } = await newTree();
    await openIn('docs/report.txt');
    const told = async (version: string) => {
      const headers = { 'x-ms-version': version };
      const { body } = await server.send('GET', `/${share.name}/docs/report.txt?comp=listhandles`, { headers });
      return ['<HandleId>', '<AccessRight>', '<ClientName>'].filter((element) => body.toString().includes(element));
    };
    expect(await told('2022-11-02')).toEqual(['<HandleId>']);
    expect(await told('2023-01-03')).toEqual(['<HandleId>', '<AccessRight>']);
    expect(await told('2023-11-03')).toEqual(['<HandleId>', '<AccessRight>']);
    expect(await told('2024-02-04')).toEqual(['<HandleId>', '<AccessRight>', '<ClientName>']);
  });

  it('take all below a directory, page by page', async () => {
    const { share, directory, file, open: openIn } = await newTree();
    for (const path of ['', 'docs', 'docs/report.txt', 'docs/report.txt']) await openIn(path);
    const paths = async (recursive: boolean, of = share.rootDirectoryClient) => {
      const found = [];
      for await (const page of of.listHandles({ recursive }).byPage({ maxPageSize: 1 }))
        found.push(...(page.handleList ?? []).map(({ path = '' }) => path));
      return found.sort();
    };
    expect(await paths(false)).toEqual(['']);
    expect(await paths(true)).toEqual(['', 'docs', 'docs/report.txt', 'docs/report.txt']);
    expect(await paths(true, directory)).toEqual(['docs', 'docs/report.txt', 'docs/report.txt']);
    expect(await file.forceCloseAllHandles()).toMatchObject({ closedHandlesCount: 2, closeFailureCount: 0 });
    expect(await directory.forceCloseAllHandles({ recursive: true })).toMatchObject({ closedHandlesCount: 1 });
    expect(await paths(true)).toEqual(['']);
  });

  it('close one handle, after which a rename above it succeeds', async () => {
    const { share, directory, file, open: openIn } = await newTree();
    const { handle: above } = await openIn('docs', { access: 0 });
    expect(await file.forceCloseHandle(above.id.toString())).toMatchObject({ closedHandlesCount: 0 });
    expect(await directory.forceCloseHandle(above.id.toString())).toMatchObject({ closedHandlesCount: 1 });
    const { handle } = await openIn('docs/report.txt', { access: 0 });
    const headers = { 'x-ms-file-rename-source': `${server.url}/${share.name}/docs` };
    const rename = () => server.send('PUT', `/${share.name}/papers?restype=directory&comp=rename`, { headers });
    expect(await rename()).toMatchObject({ status: 409, code: 'SharingViolation' });
    expect(await file.forceCloseHandle(handle.id.toString())).toMatchObject({ closedHandlesCount: 1 });
    expect(await file.forceCloseHandle(handle.id.toString())).toMatchObject({ closedHandlesCount: 0 });
    expect(await rename()).toMatchObject({ status: 200 });
  });

  it('refuse a bad request', async () => {
    const { share, file } = await newTree();
    expect(await refusal(file.forceCloseHandle('none'))).toMatchObject({ status: 400, code: 'InvalidHeaderValue' });
    const target = `/${share.name}/docs/report.txt?comp=forceclosehandles`;
    expect(await server.send('PUT', target, {})).toMatchObject({ status: 400, code: 'MissingRequiredHeader' });
    const headers = { 'x-ms-handle-id': '*', 'x-ms-recursive': 'true' };
    expect(await server.send('PUT', target, { headers })).toMatchObject({ status: 400, code: 'InvalidHeaderValue' });
    const list = (query: string) => server.send('GET', `/${share.name}/docs?comp=listhandles${query}`, {});
    expect(await list('&maxresults=0')).toMatchObject({ status: 400, code: 'OutOfRangeQueryParameterValue' });
    expect(await list('&marker=x')).toMatchObject({ status: 400, code: 'InvalidQueryParameterValue' });
    expect((await list('&maxresults=7&marker=1!2')).body.toString()).toContain(
      '<EnumerationResults><Marker>1!2</Marker><MaxResults>7</MaxResults><Entries></Entries><NextMarker />',
    );
    const missing = share.getDirectoryClient('none');
    expect(await refusal(missing.forceCloseAllHandles())).toMatchObject({ status: 404, code: 'ResourceNotFound' });
  });
});
