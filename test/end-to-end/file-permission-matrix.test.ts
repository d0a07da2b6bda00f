/**
 * What signatures permit of the File service, as Microsoft's pages "Create an account SAS" and "Create a service SAS" have it, written down
 * from them and not from the server's own table. Every request is for a share that does not exist: what is permitted is 404, or 400.
 */
import { describe, expect, it } from 'vitest';
import { fileSasToken } from '../../src/rest/auth/sas-signature.ts';
import { fileOperations } from '../../src/rest/file/operations.ts';
import { parseFilePath } from '../../src/rest/file/params.ts';
import { parseQuery } from '../../src/rest/request.ts';
import { compileRouter } from '../../src/rest/router.ts';
import { accountSas } from '../support/raw-signing.mjs';
import { account, accountKey, serverFor } from '../support/test-server.ts';

const running = serverFor('memory');
const VERSION = '2022-11-02';
const EXPIRY = '2099-01-01T00:00:00Z';
const SHARE = 'nothing';
const FILE = 'dir/file';

interface Line {
  readonly operation: string;
  readonly request: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The resource type of an account SAS, and the letters of which any one suffices. */
  readonly types: 's' | 'c' | 'o';
  readonly letters: string;
  /** Which service SAS permits it: of the share (s), of the file (f). */
  readonly service: string;
}

const line = (operation: string, request: string, types: Line['types'], letters: string, service = '', headers = {}) =>
  ({ operation, request, types, letters, service, headers }) satisfies Line;
/** With it a permitted request creates nothing. */
const NO_SIZE = { 'x-ms-share-quota': '0' };
const LEASE = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': '-1' };

const S = `/${SHARE}?restype=share`;
const D = `/${SHARE}/dir?restype=directory`;
const R = `/${SHARE}?restype=directory`;
const F = `/${SHARE}/${FILE}`;

// biome-ignore format: a table
const lines: readonly Line[] = [
  line('Create Share', `PUT ${S}`, 'c', 'cw', '', NO_SIZE),
  line('Get Share Properties', `GET ${S}`, 'c', 'r'),
  line('Set Share Properties', `PUT ${S}&comp=properties`, 'c', 'w'),
  line('Get Share Metadata', `GET ${S}&comp=metadata`, 'c', 'r'),
  line('Set Share Metadata', `PUT ${S}&comp=metadata`, 'c', 'w'),
  line('Get Share ACL', `GET ${S}&comp=acl`, 'c', ''),
  line('Set Share ACL', `PUT ${S}&comp=acl`, 'c', ''),
  line('Get Share Stats', `GET ${S}&comp=stats`, 'c', 'r'),
  line('Delete Share', `DELETE ${S}`, 'c', 'd'),
  line('Lease Share', `PUT ${S}&comp=lease`, 'c', 'w', '', LEASE),
  line('List Directories and Files', `GET ${R}&comp=list`, 'c', 'l', 's'),
  line('Get Directory Properties', `GET ${R}`, 'o', 'r', 's'),
  line('List Directories and Files', `GET ${D}&comp=list`, 'c', 'l', 's'),
  line('Create Directory', `PUT ${D}`, 'o', 'cw', 's'),
  line('Get Directory Properties', `GET ${D}`, 'o', 'r', 's'),
  line('Delete Directory', `DELETE ${D}`, 'o', 'd', 's'),
  line('Get Directory Metadata', `GET ${D}&comp=metadata`, 'o', 'r', 's'),
  line('Set Directory Metadata', `PUT ${D}&comp=metadata`, 'o', 'w', 's'),
  line('Create File', `PUT ${F}`, 'o', 'cw', 'sf', { 'x-ms-type': 'file', 'x-ms-content-length': '1' }),
  line('Get File', `GET ${F}`, 'o', 'r', 'sf'),
  line('Get File Properties', `HEAD ${F}`, 'o', 'r', 'sf'),
  line('Delete File', `DELETE ${F}`, 'o', 'd', 'sf'),
  line('Set File Properties', `PUT ${F}?comp=properties`, 'o', 'w', 'sf'),
  line('Get File Metadata', `GET ${F}?comp=metadata`, 'o', 'r', 'sf'),
  line('Set File Metadata', `PUT ${F}?comp=metadata`, 'o', 'w', 'sf'),
  line('List Ranges', `GET ${F}?comp=rangelist`, 'o', 'r', 'sf'),
  line('Lease File', `PUT ${F}?comp=lease`, 'o', 'w', 'sf', LEASE),
];

async function isPermitted({ request, headers }: Line, sas: string): Promise<boolean> {
  const [method = '', target = ''] = request.split(' ');
  const path = `${target}${target.includes('?') ? '&' : '?'}${sas}`;
  const answer = await running.request(method, path, { of: 'file', unsigned: true, headers: { ...headers } });
  if (answer.status !== 403) expect([400, 404]).toContain(answer.status);
  return answer.status !== 403;
}

describe.each(lines)('$operation, $request', (row) => {
  it('is the operation of its name', () => {
    const [method = '', target = ''] = row.request.split(' ');
    const [path = '', query = ''] = target.split('?');
    const request = { method, query: parseQuery(query), headers: { ...row.headers }, shape: parseFilePath(path).shape };
    expect(compileRouter(fileOperations).match(request).name).toBe(row.operation);
  });

  it('is permitted to account signatures of its resource type, with one of its letters', async () => {
    const permitted: string[] = [];
    for (const srt of 'sco')
      for (const sp of 'rwdlc') {
        const sas = accountSas({ sv: VERSION, ss: 'f', srt, sp, se: EXPIRY }).join('&');
        if (await isPermitted(row, sas)) permitted.push(srt + sp);
      }
    const meant = [...'rwdlc'].filter((sp) => row.letters.includes(sp)).map((sp) => row.types + sp);
    expect(permitted).toEqual(meant);
  });

  it('is permitted to service signatures of the share or the file, with one of its letters', async () => {
    const permitted: string[] = [];
    for (const resource of ['s', 'f'] as const)
      for (const permissions of 'rcwdl') {
        const target = { container: SHARE, blob: resource === 'f' ? FILE : '' };
        const wanted = { version: VERSION, resource, permissions, expiry: EXPIRY };
        if (await isPermitted(row, fileSasToken(account, target, wanted, accountKey)))
          permitted.push(resource + permissions);
      }
    const meant = [...row.service].flatMap((of) =>
      [...'rcwdl'].filter((sp) => row.letters.includes(sp)).map((sp) => of + sp),
    );
    expect(permitted).toEqual(meant);
  });
});
