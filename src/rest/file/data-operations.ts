/** Operations on the bytes of files: ranges, leases and copies: one row each. */
import { formatIso7 } from '../../base/time.ts';
import { commonErrors, errorFactory } from '../../services/common/errors.ts';
import type { Storage } from '../../services/common/storage.ts';
import { createFileWithBytes, precheckCreateFile } from '../../services/file/create-file.ts';
import { leaseFile } from '../../services/file/file-leases.ts';
import type { File } from '../../services/file/node-rows.ts';
import {
  clearFileRange,
  FILE_BYTES_MAX,
  PUT_RANGE_BYTES_MAX,
  precheckPutRange,
  putRange,
} from '../../services/file/ranges.ts';
import { downloadFile, listRanges } from '../../services/file/reads.ts';
import { parseShareSnapshot } from '../../services/file/snapshot-rows.ts';
import { leaseParams, leaseReply } from '../lease-request.ts';
import { type Operation, operationOn, type Request } from '../operation.ts';
import {
  booleanHeader,
  header,
  integerHeader,
  integerQuery,
  invalidHeader,
  leaseId,
  metadata,
  noContent,
  range,
  reader,
  required,
} from '../params.ts';
import { PAGE_BYTES, streamedXmlReply, validatorHeaders } from '../reply.ts';
import { structuredReply } from '../structured-body/encoded-reply.ts';
import { structuredType } from '../structured-body/headers.ts';
import { structuredContent } from '../structured-body/structured-content.ts';
import { rangeElements, rangeListMarker, rangeListXml } from '../xml/range-list.ts';
import { fileHeaders, isBefore, writtenHeaders } from './file-reply.ts';
import { fileContentHeaders, place, snapshot } from './params.ts';
import { newSmb } from './smb-headers.ts';

const fail = errorFactory(commonErrors);
const operation = operationOn<Storage>();
const TEST = 'test/end-to-end/file-ranges.test.ts';

/** Since this version a write changes the time of the last write, and answers with it. */
const TIMES_SINCE = '2021-06-08';
export const file = { ...place, leaseId };
const readFile = { ...file, snapshot };
export const writtenRange = {
  ...file,
  range: required('x-ms-range', range),
  lastWrite: header('x-ms-file-last-write-time'),
  keepsTimes: reader(({ version }) => isBefore(version, TIMES_SINCE)),
};

export const lastWriteHeader = ({ times }: File, { version }: Request) => ({
  'x-ms-file-last-write-time': isBefore(version, TIMES_SINCE) ? undefined : formatIso7(times.lastWrite),
});

/** Most clients know no pages of a list, and must not take a part for all: a longer one is refused unless they ask for pages. */
const RANGES_AT_ONCE_MAX = 100_000;
const RANGES_MAX = 10_000;
const resultsMax = integerQuery('maxresults', { min: 1, max: 2 ** 31 - 1 });
const isPaged = ({ query }: Request): boolean => query.maxresults !== undefined || query.marker !== undefined;
const listLimit = reader((request) => {
  if (!isPaged(request)) return RANGES_AT_ONCE_MAX;
  return Math.min(resultsMax.read(request) ?? RANGES_MAX, RANGES_MAX);
});

/** The snapshot with which List Ranges compares. */
const previousSnapshot = reader(({ query, headers }) => {
  const { prevsharesnapshot: text } = query;
  if (text !== undefined) return parseShareSnapshot(text, 'prevsharesnapshot');
  const rename = headers['x-ms-file-support-rename'];
  if (rename !== undefined) throw invalidHeader('x-ms-file-support-rename', String(rename));
  return undefined;
});

export const dataOperations: readonly Operation<Storage>[] = [
  operation({
    name: 'Create File',
    route: 'PUT /{share}/{path}',
    when: { 'x-ms-type': 'file' },
    permission: ['create', 'write'],
    smbAccess: 'replace',
    returnsETag: true,
    test: TEST,
    input: {
      ...file,
      length: required('x-ms-content-length', integerHeader('x-ms-content-length', { max: FILE_BYTES_MAX })),
      content: fileContentHeaders,
      metadata,
      smb: newSmb('file'),
      body: structuredContent({ bytesMax: PUT_RANGE_BYTES_MAX }),
    },
    precheck: precheckCreateFile,
    run: createFileWithBytes,
    reply: ({ file: made, md5 }, request) => {
      const headers = writtenHeaders(made, request);
      headers['Content-MD5'] = md5;
      headers['x-ms-structured-body'] = structuredType(request);
      return { status: 201, headers };
    },
  }),
  operation({
    name: 'Get File',
    route: 'GET /{share}/{path}',
    permission: 'read',
    smbAccess: 'read',
    returnsETag: true,
    test: TEST,
    input: {
      ...readFile,
      range,
      rangeMd5: booleanHeader('x-ms-range-get-content-md5'),
      structuredType: reader(structuredType),
    },
    run: downloadFile,
    reply: ({ file: found, leaseState, bytes, length, range: sent, rangeMd5 }, request) => {
      const { contentMd5 } = found.content;
      const headers = fileHeaders(found, leaseState, request);
      headers['Accept-Ranges'] = 'bytes';
      headers['Content-Length'] = length;
      headers['Content-MD5'] = sent ? rangeMd5 : contentMd5;
      headers['x-ms-content-md5'] = sent && contentMd5;
      headers['Content-Range'] = sent && `bytes ${sent.from}-${sent.to}/${found.length}`;
      const status = sent ? 206 : 200;
      return structuredType(request) === undefined
        ? { status, headers, body: bytes }
        : structuredReply({ status, headers }, bytes, length, request);
    },
  }),
  operation({
    name: 'Put Range',
    route: 'PUT /{share}/{path}',
    query: { comp: 'range' },
    when: { 'x-ms-write': 'update' },
    permission: 'write',
    smbAccess: 'write',
    returnsETag: true,
    test: TEST,
    input: { ...writtenRange, body: structuredContent({ bytesMax: PUT_RANGE_BYTES_MAX }) },
    precheck: precheckPutRange,
    run: putRange,
    reply: ({ file: written, md5 }, request) => ({
      status: 201,
      headers: validatorHeaders(written, {
        'Content-MD5': md5,
        'x-ms-structured-body': structuredType(request),
        'x-ms-request-server-encrypted': 'true',
        ...lastWriteHeader(written, request),
      }),
    }),
  }),
  operation({
    name: 'Put Range (clear)',
    route: 'PUT /{share}/{path}',
    query: { comp: 'range' },
    when: { 'x-ms-write': 'clear' },
    permission: 'write',
    smbAccess: 'write',
    returnsETag: true,
    test: TEST,
    input: { ...writtenRange, body: noContent },
    run: clearFileRange,
    reply: ({ file: written }, request) => ({
      status: 201,
      headers: validatorHeaders(written, lastWriteHeader(written, request)),
    }),
  }),
  operation({
    name: 'List Ranges',
    route: 'GET /{share}/{path}',
    query: { comp: 'rangelist' },
    permission: 'read',
    smbAccess: 'read',
    returnsETag: true,
    test: TEST,
    input: {
      ...readFile,
      range,
      start: rangeListMarker,
      resultsMax: listLimit,
      previous: previousSnapshot,
      followsRename: booleanHeader('x-ms-file-support-rename'),
    },
    replyBytes: () => PAGE_BYTES,
    run: async (storage, input) => {
      const parts: Buffer[] = [];
      const { file: found, next } = await listRanges(storage, input, (some) =>
        parts.push(rangeElements(some, 'Range')),
      );
      return { found, next, parts };
    },
    reply: ({ found, next, parts }, request) => {
      if (next !== undefined && !isPaged(request)) throw fail('OutOfRangeInput');
      const { status, headers, body } = streamedXmlReply(200, rangeListXml('Ranges', parts, next, isPaged(request)));
      return {
        status,
        headers: { ...headers, ...validatorHeaders(found, { 'x-ms-content-length': found.length }) },
        body,
      };
    },
  }),
  operation({
    name: 'Lease File',
    route: 'PUT /{share}/{path}',
    query: { comp: 'lease' },
    permission: 'write',
    smbAccess: 'lease',
    returnsETag: true,
    test: 'test/end-to-end/lease-file.test.ts',
    input: { ...place, ...leaseParams },
    run: async (storage, input) => ({ ...(await leaseFile(storage, input)), action: input.action }),
    reply: leaseReply,
  }),
];
