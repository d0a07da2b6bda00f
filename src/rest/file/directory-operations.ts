/** Operations on directories: one row each. The root directory has the path of its share. */
import type { Storage } from '../../services/common/storage.ts';
import {
  createDirectory,
  deleteDirectory,
  getDirectory,
  setDirectoryMetadata,
  setDirectoryProperties,
} from '../../services/file/directories.ts';
import { listDirectory } from '../../services/file/listing.ts';
import type { Directory } from '../../services/file/node-rows.ts';
import { renameNode } from '../../services/file/rename.ts';
import { streamAsProduced } from '../http/streamed.ts';
import { type Operation, operationOn, type Request } from '../operation.ts';
import { booleanHeader, header, integerQuery, listQuery, metadata, query, reader } from '../params.ts';
import { estimateListBytes, metadataHeaders, streamedXmlReply, validatorHeaders } from '../reply.ts';
import { accountUrl } from '../request.ts';
import { directoryListEnd, directoryListStart, entryElements, INCLUDED } from './directory-list-xml.ts';
import { WRITTEN, writtenHeaders } from './file-reply.ts';
import { place, readPlace } from './params.ts';
import { renameSource } from './rename-source.ts';
import { addSmbHeaders, changedSmb, newSmb, renamedSmb } from './smb-headers.ts';

const operation = operationOn<Storage>();
const test = 'test/end-to-end/file-directories.test.ts';
const restype = 'directory';

/** The answer to a write that reports the directory. */
const written = (status: number) => (directory: Directory, request: Request) => ({
  status,
  headers: writtenHeaders(directory, request),
});

/** What Rename Directory and Rename File share. */
export const renameInput = {
  ...place,
  source: renameSource,
  replaces: booleanHeader('x-ms-file-rename-replace-if-exists'),
  ignoresReadOnly: booleanHeader('x-ms-file-rename-ignore-readonly'),
  sourceLeaseId: header('x-ms-source-lease-id'),
  destinationLeaseId: header('x-ms-destination-lease-id'),
  metadata,
};
export const RENAME_PERMISSION = { all: ['write', 'delete'] } as const;

const rowsAt = (shape: '/{share}' | '/{share}/{path}'): readonly Operation<Storage>[] => [
  operation({
    name: 'List Directories and Files',
    route: `GET ${shape}`,
    query: { restype, comp: 'list' },
    permission: 'list',
    smbAccess: 'none',
    test: 'test/end-to-end/file-listing.test.ts',
    input: {
      ...readPlace,
      prefix: query('prefix'),
      marker: query('marker'),
      resultsMax: integerQuery('maxresults', { min: 1, max: 2 ** 31 - 1 }),
      include: listQuery('include', INCLUDED),
      extendedInfo: booleanHeader('x-ms-file-extended-info'),
      endpoint: reader(accountUrl),
    },
    replyBytes: estimateListBytes,
    run: async (storage, { extendedInfo, endpoint, ...sent }) => {
      const input = { ...sent, isExtended: extendedInfo === true || sent.include.length > 0 };
      return streamAsProduced((append) =>
        listDirectory(storage, input, {
          begin: (directory) => append(directoryListStart(endpoint, directory, input)),
          add: (entries) => append(entryElements(entries, input.include, input.isExtended)),
          end: (nextMarker) => append(directoryListEnd(nextMarker)),
        }),
      );
    },
    reply: (pieces) => streamedXmlReply(200, pieces),
  }),
  operation({
    name: 'Create Directory',
    route: `PUT ${shape}`,
    query: { restype },
    permission: ['create', 'write'],
    smbAccess: 'none',
    returnsETag: true,
    test,
    input: { ...place, metadata, smb: newSmb('directory') },
    run: createDirectory,
    reply: written(201),
  }),
  operation({
    name: 'Get Directory Properties',
    route: `GET|HEAD ${shape}`,
    query: { restype },
    permission: 'read',
    smbAccess: 'none',
    returnsETag: true,
    test,
    input: readPlace,
    run: getDirectory,
    reply: (directory, request) => ({
      status: 200,
      headers: {
        ...addSmbHeaders(validatorHeaders(directory, { 'x-ms-server-encrypted': 'true' }), directory, request),
        ...metadataHeaders(directory.metadata),
      },
    }),
  }),
  operation({
    name: 'Delete Directory',
    route: `DELETE ${shape}`,
    query: { restype },
    permission: 'delete',
    smbAccess: 'delete',
    test,
    input: place,
    run: deleteDirectory,
    reply: () => ({ status: 202 }),
  }),
  operation({
    name: 'Set Directory Properties',
    route: `PUT ${shape}`,
    query: { restype, comp: 'properties' },
    permission: 'write',
    smbAccess: 'none',
    returnsETag: true,
    test,
    input: { ...place, smb: changedSmb('directory') },
    run: setDirectoryProperties,
    reply: written(200),
  }),
  operation({
    name: 'Get Directory Metadata',
    route: `GET|HEAD ${shape}`,
    query: { restype, comp: 'metadata' },
    permission: 'read',
    smbAccess: 'none',
    returnsETag: true,
    test,
    input: readPlace,
    run: getDirectory,
    reply: (directory) => ({ status: 200, headers: validatorHeaders(directory, metadataHeaders(directory.metadata)) }),
  }),
  operation({
    name: 'Set Directory Metadata',
    route: `PUT ${shape}`,
    query: { restype, comp: 'metadata' },
    permission: 'write',
    smbAccess: 'none',
    returnsETag: true,
    test,
    input: { ...place, metadata },
    run: setDirectoryMetadata,
    reply: (directory) => ({ status: 200, headers: validatorHeaders(directory, WRITTEN) }),
  }),
];

export const directoryOperations: readonly Operation<Storage>[] = [
  ...rowsAt('/{share}'),
  ...rowsAt('/{share}/{path}'),
  operation({
    name: 'Rename Directory',
    route: 'PUT /{share}/{path}',
    query: { restype, comp: 'rename' },
    permission: RENAME_PERMISSION,
    smbAccess: 'rename',
    returnsETag: true,
    test: 'test/end-to-end/file-rename.test.ts',
    input: { ...renameInput, smb: renamedSmb('directory') },
    run: (storage, input) => renameNode(storage, 'directory', input),
    reply: written(200),
  }),
];
