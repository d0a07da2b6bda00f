/** Page blobs on the wire, and Set Blob Properties, which changes their length and sequence number. */
import type { SequenceAction } from '../../rules/page.ts';
import { setBlobProperties } from '../../services/blob/blobs.ts';
import { copyIncrementally } from '../../services/blob/incremental-copies.ts';
import {
  clearPages,
  createPageBlob,
  getPageRanges,
  PAGE_BLOB_BYTES_MAX,
  PUT_PAGE_BYTES_MAX,
  precheckPutPage,
  putPage,
  putPageFromUrl,
  SEQUENCE_NUMBER_MAX,
  setPageProperties,
} from '../../services/blob/page-blobs.ts';
import { commonErrors, errorFactory } from '../../services/common/errors.ts';
import type { Storage } from '../../services/common/storage.ts';
import { copySource, sourceBytesMax, sourceRange } from '../copy-source.ts';
import { type ConditionHeader, type Operation, operationOn, type Reader, type Request } from '../operation.ts';
import {
  blobContentHeaders,
  contentHeaders,
  header,
  integerHeader,
  integerQuery,
  invalidHeader,
  leaseId,
  metadata,
  noContent,
  pathPart,
  range,
  reader,
  required,
} from '../params.ts';
import { PAGE_BYTES, streamedXmlReply, validatorHeaders } from '../reply.ts';
import { structuredType } from '../structured-body/headers.ts';
import { structuredContent } from '../structured-body/structured-content.ts';
import { rangeElements, rangeListMarker, rangeListXml } from '../xml/range-list.ts';
import { pageHeaders } from './blob-types.ts';
import { hashHeaders, sourceParams, UNSUPPORTED_OF_SOURCES, wantsBlockMd5 } from './from-url-operations.ts';
import {
  beforeCrc64,
  conditions,
  ENCRYPTION,
  IMMUTABILITY,
  previousSnapshot,
  rejectSnapshot,
  sizeLimit,
  snapshot,
  VERSION_PARAMS,
} from './params.ts';

const fail = errorFactory(commonErrors);
const operation = operationOn<Storage>();
const route = 'PUT /{container}/{blob}' as const;
const TEST = 'test/end-to-end/page-blobs.test.ts';
const ALL_CONDITIONS: ConditionHeader[] = ['If-Match', 'If-None-Match', 'If-Modified-Since', 'If-Unmodified-Since'];

const place = { container: pathPart(0), blob: pathPart(1), conditions, leaseId };
const target = { ...place, base: rejectSnapshot };

/** Longer than a number of JavaScript. */
function sequenceHeader(name: string, refuse: (name: string, text: string) => Error = invalidHeader) {
  const sent = header(name);
  return reader((request): bigint | undefined => {
    const text = sent.read(request);
    if (text === undefined) return undefined;
    const value = /^\d{1,19}$/.test(text) ? BigInt(text) : undefined;
    if (value === undefined || value > SEQUENCE_NUMBER_MAX) throw refuse(name, text);
    return value;
  });
}

const length = integerHeader('x-ms-blob-content-length', { max: PAGE_BLOB_BYTES_MAX });
const sequenceNumber = sequenceHeader('x-ms-blob-sequence-number');

const invalidInput = () => fail('InvalidInput');
const [le, lt, eq] = ['le', 'lt', 'eq'].map((name) => sequenceHeader(`x-ms-if-sequence-number-${name}`, invalidInput));
const sequence = reader((request) => ({ le: le!.read(request), lt: lt!.read(request), eq: eq!.read(request) }));

const requiredRange = required('x-ms-range', range);
const SEQUENCE_ACTION = 'x-ms-sequence-number-action';

const sequenceAction: Reader<SequenceAction | undefined> = reader((request) => {
  const text = header(SEQUENCE_ACTION).read(request);
  const number = sequenceNumber.read(request);
  if (text === undefined) {
    if (number !== undefined) throw fail('MissingRequiredHeader', { HeaderName: SEQUENCE_ACTION });
    return undefined;
  }
  const action = text.toLowerCase();
  if (action === 'increment') {
    if (number !== undefined) throw invalidHeader('x-ms-blob-sequence-number', number.toString());
    return { action };
  }
  if (action !== 'max' && action !== 'update') throw invalidHeader(SEQUENCE_ACTION, text);
  if (number === undefined) throw fail('MissingRequiredHeader', { HeaderName: 'x-ms-blob-sequence-number' });
  return { action, number };
});

/** Since this version a list of ranges comes in pages. */
const PAGED_SINCE = '2020-10-02';
const RANGES_MAX = 10_000;
/** Clients of earlier versions know no pages, and must not take a part for all: a longer list is refused. */
const RANGES_AT_ONCE_MAX = 100_000;

const resultsMax = integerQuery('maxresults', { min: 1, max: 2 ** 31 - 1 });
const isBeforePaging = ({ version }: Request): boolean => version !== '' && version < PAGED_SINCE;
const listLimit: Reader<number> = reader((request) => {
  const sent = resultsMax.read(request);
  if (sent === undefined && isBeforePaging(request)) return RANGES_AT_ONCE_MAX;
  return Math.min(sent ?? RANGES_MAX, RANGES_MAX);
});
/** A comparison has a marker in any case. */
const isPaged = (request: Request): boolean =>
  request.query.maxresults !== undefined || request.query.marker !== undefined || isComparison(request);
const isComparison = (request: Request): boolean => previousSnapshot.read(request) !== undefined;

export const setBlobPropertiesRow: Operation<Storage> = operation({
  name: 'Set Blob Properties',
  route,
  query: { comp: 'properties' },
  permission: 'write',
  conditions: ALL_CONDITIONS,
  returnsETag: true,
  test: 'test/end-to-end/set-blob-properties.test.ts',
  unsupported: VERSION_PARAMS,
  input: { ...target, content: blobContentHeaders, length, sequence: sequenceAction },
  run: async (storage, input): Promise<{ etag: string; modified: bigint; result?: { sequenceNumber: bigint } }> => {
    const { content } = input;
    if (input.length === undefined && !input.sequence) return setBlobProperties(storage, input);
    const isSent = Object.values(content).some((value) => value !== undefined);
    return setPageProperties(storage, { ...input, content: isSent ? content : undefined });
  },
  reply: (written) => ({
    status: 200,
    headers: validatorHeaders(written, written.result && pageHeaders(written.result)),
  }),
});

/** The columns that Put Page and Clear Page share. */
const pageWriteRow = {
  route,
  query: { comp: 'page' },
  permission: 'write' as const,
  conditions: ALL_CONDITIONS,
  returnsETag: true,
  test: TEST,
  unsupported: VERSION_PARAMS,
  unsupportedUnlessLenient: ENCRYPTION,
};

export const pageOperations: readonly Operation<Storage>[] = [
  operation({
    name: 'Put Blob (page blob)',
    route,
    when: { 'x-ms-blob-type': 'PageBlob' },
    permission: ['write', 'create'],
    conditions: ALL_CONDITIONS,
    returnsETag: true,
    test: TEST,
    unsupported: VERSION_PARAMS,
    unsupportedUnlessLenient: ['x-ms-expiry-option', ...ENCRYPTION, ...IMMUTABILITY],
    input: {
      ...target,
      content: contentHeaders,
      metadata,
      tags: header('x-ms-tags'),
      length: required('x-ms-blob-content-length', length),
      sequenceNumber,
      tier: header('x-ms-access-tier'),
      body: noContent,
    },
    run: createPageBlob,
    reply: (written) => ({
      status: 201,
      headers: validatorHeaders(written, { 'x-ms-request-server-encrypted': 'true' }),
    }),
  }),
  operation({
    ...pageWriteRow,
    name: 'Put Page',
    when: { 'x-ms-page-write': 'update' },
    input: {
      ...target,
      range: requiredRange,
      sequence,
      wantsMd5: beforeCrc64,
      size: sizeLimit([['', PUT_PAGE_BYTES_MAX]]),
      body: structuredContent({ bytesMax: PUT_PAGE_BYTES_MAX }),
    },
    precheck: precheckPutPage,
    run: putPage,
    reply: ({ written, md5, crc64 }, request) => ({
      status: 201,
      headers: validatorHeaders(written, {
        'Content-MD5': md5,
        'x-ms-content-crc64': md5 === undefined ? crc64 : undefined,
        'x-ms-structured-body': structuredType(request),
        'x-ms-request-server-encrypted': 'true',
        ...pageHeaders(written.result),
      }),
    }),
  }),
  operation({
    name: 'Put Page From URL',
    route,
    query: { comp: 'page' },
    when: { 'x-ms-page-write': 'update', 'x-ms-copy-source': true },
    permission: 'write',
    readsCopySource: 'by its credential',
    conditions: ALL_CONDITIONS,
    returnsETag: true,
    test: TEST,
    unsupported: UNSUPPORTED_OF_SOURCES,
    unsupportedUnlessLenient: ENCRYPTION,
    input: {
      ...target,
      ...sourceParams,
      range: requiredRange,
      sourceRange: required('x-ms-source-range', sourceRange),
      sequence,
      wantsMd5: wantsBlockMd5,
      sourceBytesMax: sourceBytesMax([['', PUT_PAGE_BYTES_MAX]]),
    },
    run: async (storage, input) => ({ copied: await putPageFromUrl(storage, input), wantsMd5: input.wantsMd5 }),
    reply: ({ copied, wantsMd5 }) => ({
      status: 201,
      headers: validatorHeaders(copied.written, {
        ...hashHeaders(copied, wantsMd5),
        ...pageHeaders(copied.written.result),
        'x-ms-request-server-encrypted': 'true',
      }),
    }),
  }),
  operation({
    ...pageWriteRow,
    name: 'Clear Page',
    when: { 'x-ms-page-write': 'clear' },
    input: { ...target, range: requiredRange, sequence, body: noContent },
    run: clearPages,
    reply: (written) => ({
      status: 201,
      headers: validatorHeaders(written, pageHeaders(written.result)),
    }),
  }),
  operation({
    name: 'Incremental Copy Blob',
    route,
    query: { comp: 'incrementalcopy' },
    permission: ['write', 'create'],
    readsCopySource: 'by its credential',
    conditions: ALL_CONDITIONS,
    returnsETag: true,
    test: 'test/end-to-end/incremental-copy-blob.test.ts',
    unsupported: VERSION_PARAMS,
    input: { ...target, source: copySource('by its credential') },
    run: copyIncrementally,
    reply: ({ copyId, copyStatus, ...written }) => ({
      status: 202,
      headers: validatorHeaders(written, { 'x-ms-copy-id': copyId, 'x-ms-copy-status': copyStatus }),
    }),
  }),
  operation({
    name: 'Get Page Ranges',
    route: 'GET /{container}/{blob}',
    query: { comp: 'pagelist' },
    permission: 'read',
    conditions: ALL_CONDITIONS,
    returnsETag: true,
    test: TEST,
    unsupported: VERSION_PARAMS,
    input: { ...place, snapshot, since: previousSnapshot, range, start: rangeListMarker, resultsMax: listLimit },
    replyBytes: () => PAGE_BYTES,
    run: async (storage, input) => {
      const parts: Buffer[] = [];
      const { blob, next } = await getPageRanges(storage, input, (ranges) =>
        parts.push(rangeElements(ranges, 'PageRange')),
      );
      return { blob, next, parts };
    },
    reply: ({ blob, next, parts }, request) => {
      if (next !== undefined && !isPaged(request) && isBeforePaging(request)) throw fail('OutOfRangeInput');
      const { status, headers, body } = streamedXmlReply(200, rangeListXml('PageList', parts, next, isPaged(request)));
      return {
        status,
        headers: { ...headers, ...validatorHeaders(blob, { 'x-ms-blob-content-length': blob.length }) },
        body,
      };
    },
  }),
];
