/** Operations on files, without their bytes: one row each. */
import type { Storage } from '../../services/common/storage.ts';
import { deleteFile, getFile, setFileMetadata, setFileProperties } from '../../services/file/files.ts';
import type { File } from '../../services/file/node-rows.ts';
import { FILE_BYTES_MAX } from '../../services/file/ranges.ts';
import { renameNode } from '../../services/file/rename.ts';
import { type Operation, operationOn, type Request } from '../operation.ts';
import { header, integerHeader, leaseId, metadata } from '../params.ts';
import { metadataHeaders, validatorHeaders } from '../reply.ts';
import { RENAME_PERMISSION, renameInput } from './directory-operations.ts';
import { fileHeaders, WRITTEN, writtenHeaders } from './file-reply.ts';
import { changedContentHeaders, place, snapshot } from './params.ts';
import { changedSmb, renamedSmb } from './smb-headers.ts';

const operation = operationOn<Storage>();
const test = 'test/end-to-end/files.test.ts';
const file = { ...place, leaseId };

/** The answer to a write that reports the file. */
const written = (changed: File, request: Request) => ({
  status: 200,
  headers: writtenHeaders(changed, request),
});

export const fileEntryOperations: readonly Operation<Storage>[] = [
  operation({
    name: 'Get File Properties',
    route: 'HEAD /{share}/{path}',
    permission: 'read',
    smbAccess: 'none',
    returnsETag: true,
    test,
    input: { ...file, snapshot },
    run: getFile,
    reply: ({ file: found, leaseState }, request) => {
      const headers = fileHeaders(found, leaseState, request);
      headers['Content-Length'] = found.length;
      headers['Content-MD5'] = found.content.contentMd5;
      return { status: 200, headers };
    },
  }),
  operation({
    name: 'Delete File',
    route: 'DELETE /{share}/{path}',
    permission: 'delete',
    smbAccess: 'delete',
    test,
    input: file,
    run: deleteFile,
    reply: () => ({ status: 202 }),
  }),
  operation({
    name: 'Set File Properties',
    route: 'PUT /{share}/{path}',
    query: { comp: 'properties' },
    permission: 'write',
    smbAccess: 'write',
    returnsETag: true,
    test,
    input: {
      ...file,
      content: changedContentHeaders,
      length: integerHeader('x-ms-content-length', { max: FILE_BYTES_MAX }),
      smb: changedSmb('file'),
    },
    run: setFileProperties,
    reply: written,
  }),
  operation({
    name: 'Get File Metadata',
    route: 'GET|HEAD /{share}/{path}',
    query: { comp: 'metadata' },
    permission: 'read',
    smbAccess: 'none',
    returnsETag: true,
    test,
    input: { ...file, snapshot },
    run: getFile,
    reply: ({ file: found }) => ({ status: 200, headers: validatorHeaders(found, metadataHeaders(found.metadata)) }),
  }),
  operation({
    name: 'Set File Metadata',
    route: 'PUT /{share}/{path}',
    query: { comp: 'metadata' },
    permission: 'write',
    smbAccess: 'write',
    returnsETag: true,
    test,
    input: { ...file, metadata },
    run: setFileMetadata,
    reply: (changed) => ({ status: 200, headers: validatorHeaders(changed, WRITTEN) }),
  }),
  operation({
    name: 'Rename File',
    route: 'PUT /{share}/{path}',
    query: { comp: 'rename' },
    permission: RENAME_PERMISSION,
    smbAccess: 'rename',
    returnsETag: true,
    test: 'test/end-to-end/file-rename.test.ts',
    input: { ...renameInput, contentType: header('x-ms-content-type'), smb: renamedSmb('file') },
    run: (storage, input) => renameNode(storage, 'file', input),
    reply: written,
  }),
];
