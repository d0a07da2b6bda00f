/** Copies onto files, and ranges from a URL: one row each. */
import type { Storage } from '../../services/common/storage.ts';
import { abortFileCopy, copyFile } from '../../services/file/copies.ts';
import { putRangeFromUrl } from '../../services/file/range-from-url.ts';
import { PUT_RANGE_BYTES_MAX } from '../../services/file/ranges.ts';
import { copySource, requireAbortAction, sourceBytesMax, sourceRange } from '../copy-source.ts';
import { type Operation, operationOn } from '../operation.ts';
import {
  base64Header,
  booleanHeader,
  metadata,
  noContent,
  reader,
  required,
  requiredQuery,
  sourceHashes,
} from '../params.ts';
import { validatorHeaders } from '../reply.ts';
import { file, lastWriteHeader, writtenRange } from './data-operations.ts';
import { copiedSmb } from './smb-headers.ts';

const operation = operationOn<Storage>();
const route = 'PUT /{share}/{path}' as const;
const test = 'test/end-to-end/copy-file.test.ts';

const crc64Conditions = reader((request) => ({
  ifMatch: base64Header(request, 'x-ms-source-if-match-crc64'),
  ifNoneMatch: base64Header(request, 'x-ms-source-if-none-match-crc64'),
}));

export const fileCopyOperations: readonly Operation<Storage>[] = [
  operation({
    name: 'Put Range From URL',
    route,
    query: { comp: 'range' },
    when: { 'x-ms-write': 'update', 'x-ms-copy-source': true },
    permission: 'write',
    smbAccess: 'write',
    readsCopySource: 'by its credential',
    returnsETag: true,
    test,
    input: {
      ...writtenRange,
      source: copySource('by its credential'),
      sourceRange: required('x-ms-source-range', sourceRange),
      sourceConditions: reader(() => ({})),
      sourceHashes,
      sourceBytesMax: sourceBytesMax([['', PUT_RANGE_BYTES_MAX]]),
      crc64Conditions,
      body: noContent,
    },
    run: putRangeFromUrl,
    reply: ({ file: written, crc64 }, request) => ({
      status: 201,
      headers: validatorHeaders(written, {
        'x-ms-content-crc64': crc64,
        'x-ms-request-server-encrypted': 'true',
        ...lastWriteHeader(written, request),
      }),
    }),
  }),
  // Whether the request names the type of the file or not.
  ...[{}, { 'x-ms-type': 'file' }].map((type) =>
    operation({
      name: 'Copy File',
      route,
      when: { 'x-ms-copy-source': true, ...type },
      permission: ['create', 'write'],
      smbAccess: 'replace',
      readsCopySource: 'as owner',
      returnsETag: true,
      test,
      input: {
        ...file,
        source: copySource('as owner'),
        metadata,
        smb: copiedSmb,
        ignoresReadOnly: booleanHeader('x-ms-file-copy-ignore-readonly'),
        body: noContent,
      },
      run: copyFile,
      reply: ({ file: made, copyId, copyStatus }) => ({
        status: 202,
        headers: validatorHeaders(made, { 'x-ms-copy-id': copyId, 'x-ms-copy-status': copyStatus }),
      }),
    }),
  ),
  operation({
    name: 'Abort Copy File',
    route,
    query: { comp: 'copy' },
    permission: 'write',
    smbAccess: 'none',
    test,
    input: { ...file, copyId: requiredQuery('copyid'), action: requireAbortAction },
    run: abortFileCopy,
    reply: () => ({ status: 204 }),
  }),
];
