/** Every cell of the permission table, asked of a server over HTTP. */
import { beforeAll, describe, expect, it } from 'vitest';
import { blobOperations } from '../../src/rest/blob/operations.ts';
import { accountSas, serviceSas } from '../support/raw-signing.mjs';
import { type Answer, expectError, serverFor, version } from '../support/test-server.ts';
import {
  cellsOf,
  forEveryone,
  type PermissionCell,
  type PermissionRow,
  permissionRows,
} from '../truth-tables/permissions.ts';

const running = serverFor('memory');
const AT_ONCE = 32;
const EXPIRY = '2099-01-01T00:00:00Z';
const SAS_VERSION = '2022-11-02';
const CONTAINER = 'matrix';
let fresh = 0;

beforeAll(async () => {
  await running.service.createContainer(CONTAINER);
  const blob = running.service.getContainerClient(CONTAINER).getBlockBlobClient('dir/blob');
  await blob.upload('content', 7);
});

function ownerSas(path: string): string {
  return `${running.server.blobUrl}${path}?${serviceSas(path, { sv: SAS_VERSION, sr: 'b', sp: 'r', se: EXPIRY }).join('&')}`;
}

/** The path, the headers and the body of a row, with names filled in. */
function requestOf(row: PermissionRow) {
  fresh += 1;
  const path = row.path.replace('{container}', CONTAINER).replace('{fresh}', `fresh-${fresh}`);
  const headers = { ...row.headers };
  if (headers['x-ms-copy-source']) headers['x-ms-copy-source'] = ownerSas(`/${CONTAINER}/dir/blob`);
  return { path, headers, body: row.body };
}

function sasOf({ sas }: PermissionCell, path: string): string[] {
  const fields = { sv: SAS_VERSION, sp: sas.letters, se: EXPIRY };
  if (sas.kind === 'account') return accountSas({ ...fields, ss: sas.services, srt: sas.types });
  const [, container = '', ...names] = path.split('/');
  if (sas.resource === 'd') {
    return serviceSas(`/${container || CONTAINER}/dir`, { ...fields, sr: 'd', sdd: '1' });
  }
  const blob = sas.resource === 'b' ? `/${names.length > 0 ? names.join('/') : 'dir/blob'}` : '';
  return serviceSas(`/${container || CONTAINER}${blob}`, { ...fields, sr: sas.resource });
}

function send({ method, query }: PermissionRow, path: string, parts: string[], headers: object, body?: string) {
  const all = [...(query === undefined ? [] : [query]), ...parts].join('&');
  const content = body === undefined ? {} : { body };
  return running.request(method, `${path}?${all}`, { unsigned: true, headers: { ...headers }, ...content });
}

/** The difference from the table, as one line. */
async function ask(cell: PermissionCell): Promise<string | undefined> {
  const { path, headers, body } = requestOf(cell.row);
  const answer = await send(cell.row, path, sasOf(cell, path), headers, body);
  const said = `${answer.status} ${answer.headers['x-ms-error-code'] ?? ''}`;
  const isRefused = answer.status === 401 || answer.status === 403;
  const meant = cell.code === undefined ? !isRefused && answer.status < 500 : said === `403 ${cell.code}`;
  return meant ? undefined : `${cell.title}: ${said} instead of ${cell.code ?? 'leave to do it'}`;
}

async function askAll(cells: readonly PermissionCell[]): Promise<string[]> {
  const differences: string[] = [];
  const left = [...cells];
  const worker = async () => {
    for (let cell = left.pop(); cell; cell = left.pop()) {
      const difference = await ask(cell);
      if (difference !== undefined) differences.push(difference);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return differences;
}

describe('Permissions of a shared access signature', () => {
  it('are asked for every operation that is built', () => {
    const built = blobOperations.filter((row) => row.isImplemented).map((row) => row.name);
    const asked = [...permissionRows.map((row) => row.operation), ...forEveryone];
    expect([...new Set(asked)].sort()).toEqual([...new Set(built)].sort());
    expect(permissionRows.flatMap(cellsOf).length).toBeGreaterThan(3_000);
  });

  for (const row of permissionRows) {
    const name = row.variant === undefined ? row.operation : `${row.operation} (${row.variant})`;
    it(`permit or refuse ${name} as in the table`, async () => expect(await askAll(cellsOf(row))).toEqual([]));
  }

  it.each(['z', 'R', 'rr', 'wr', 'u', 'r w', 'é'])('are refused as no permissions: %j', async (letters) => {
    const parts = serviceSas(`/${CONTAINER}/dir/blob`, { sv: SAS_VERSION, sr: 'b', sp: letters, se: EXPIRY });
    const answer = await running.request('GET', `/${CONTAINER}/dir/blob?${parts.join('&')}`, { unsigned: true });
    expectError(answer, 403, 'AuthenticationFailed');
  });
});

describe('An anonymous caller', () => {
  beforeAll(async () => {
    const container = running.service.getContainerClient('open-none');
    await container.create();
    await container.getBlockBlobClient('dir/blob').upload('content', 7);
  });

  it('is shown nothing by an older version', async () => {
    const ask = (headers: Record<string, string | undefined>) =>
      running.request('GET', '/open-none/dir/blob', { unsigned: true, headers });
    expectError(await ask({ 'x-ms-version': '2019-07-07' }), 404, 'ResourceNotFound');
    expectError(await ask({ 'x-ms-version': undefined }), 404, 'ResourceNotFound');
    const challenged = await ask({ 'x-ms-version': version });
    expectError(challenged, 401, 'NoAuthenticationInformation');
    expect(challenged.headers['www-authenticate']).toBeTruthy();
  });
});

describe('A signature that permits only to create', () => {
  const put = { 'x-ms-blob-type': 'BlockBlob' };
  const asCreator = (method: string, name: string, headers: object, query = '', body = 'mine'): Promise<Answer> => {
    const path = `/${CONTAINER}/${name}`;
    const parts = serviceSas(`/${CONTAINER}`, { sv: SAS_VERSION, sr: 'c', sp: 'c', se: EXPIRY });
    const content = method === 'PUT' ? { body } : {};
    return running.request(method, `${path}?${[query, ...parts].filter(Boolean).join('&')}`, {
      unsigned: true,
      headers: { ...headers },
      ...content,
    });
  };

  it('makes a blob once and does not overwrite it', async () => {
    expect((await asCreator('PUT', 'once', put)).status).toBe(201);
    expectError(await asCreator('PUT', 'once', put, '', 'again'), 403, 'UnauthorizedBlobOverwrite');
    const blob = running.service.getContainerClient(CONTAINER).getBlobClient('once');
    expect((await blob.downloadToBuffer()).toString()).toBe('mine');
  });

  it('copies to a new blob and not to one that is there', async () => {
    const copy = { 'x-ms-copy-source': ownerSas(`/${CONTAINER}/dir/blob`) };
    expect((await asCreator('PUT', 'copied', copy, '', '')).status).toBe(202);
    expectError(await asCreator('PUT', 'copied', copy, '', ''), 403, 'UnauthorizedBlobOverwrite');
  });

  it('commits no blocks: these need the right to write', async () => {
    const answer = await asCreator('PUT', 'blocks', {}, 'comp=blocklist', '<BlockList />');
    expectError(answer, 403, 'AuthorizationPermissionMismatch');
  });

  it('is one of two, where two begin at once', async () => {
    for (let round = 0; round < 50; round++) {
      const answers = await Promise.all(
        ['one', 'two'].map((body) => asCreator('PUT', `raced-${round}`, put, '', body)),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 403]);
      const winner = answers.findIndex(({ status }) => status === 201);
      expectError(answers[1 - winner]!, 403, 'UnauthorizedBlobOverwrite');
      const read = await running.request('GET', `/${CONTAINER}/raced-${round}`);
      expect(read.text).toBe(['one', 'two'][winner]);
    }
  });

  it('is one of two also where the upload is long', async () => {
    const long = 'x'.repeat(100_000);
    const answers = await Promise.all(['1', '2'].map((body) => asCreator('PUT', 'raced-long', put, '', body + long)));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 403]);
  });

  it('writes where the same signature lets it write, too', async () => {
    const parts = serviceSas(`/${CONTAINER}`, { sv: SAS_VERSION, sr: 'c', sp: 'cw', se: EXPIRY });
    const path = `/${CONTAINER}/both?${parts.join('&')}`;
    for (const body of ['one', 'two']) {
      expect((await running.request('PUT', path, { unsigned: true, headers: put, body })).status).toBe(201);
    }
  });
});
