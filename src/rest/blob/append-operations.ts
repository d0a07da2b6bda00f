/** Append blobs on the wire. */
import {
  appendBlock,
  appendBlockFromUrl,
  createAppendBlob,
  precheckAppendBlock,
  sealBlob,
} from '../../services/blob/append-blobs.ts';
import type { Storage } from '../../services/common/storage.ts';
import { sourceBytesMax, sourceRange } from '../copy-source.ts';
import { type ConditionHeader, type Operation, operationOn, type Reader } from '../operation.ts';
import { contentHeaders, header, integerHeader, leaseId, metadata, noContent, pathPart, reader } from '../params.ts';
import { validatorHeaders } from '../reply.ts';
import { structuredType } from '../structured-body/headers.ts';
import { structuredContent } from '../structured-body/structured-content.ts';
import { hashHeaders, sourceParams, UNSUPPORTED_OF_SOURCES, wantsBlockMd5 } from './from-url-operations.ts';
import {
  APPEND_BLOCK_SIZES,
  beforeCrc64,
  conditions,
  ENCRYPTION,
  IMMUTABILITY,
  noTier,
  rejectSnapshot,
  sizeLimit,
  VERSION_PARAMS,
} from './params.ts';

const operation = operationOn<Storage>();
const route = 'PUT /{container}/{blob}' as const;
const TEST = 'test/end-to-end/append-blobs.test.ts';
const ALL_CONDITIONS: ConditionHeader[] = ['If-Match', 'If-None-Match', 'If-Modified-Since', 'If-Unmodified-Since'];

const target = { container: pathPart(0), blob: pathPart(1), base: rejectSnapshot, conditions, leaseId };

const position = integerHeader('x-ms-blob-condition-appendpos');
const lengthMax = integerHeader('x-ms-blob-condition-maxsize');
const appendConditions: Reader<{ position: number | undefined; lengthMax: number | undefined }> = reader((request) => ({
  position: position.read(request),
  lengthMax: lengthMax.read(request),
}));

export const appendOperations: readonly Operation<Storage>[] = [
  operation({
    name: 'Put Blob (append blob)',
    route,
    when: { 'x-ms-blob-type': 'AppendBlob' },
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
      tier: noTier,
      body: noContent,
    },
    run: createAppendBlob,
    reply: (written) => ({
      status: 201,
      headers: validatorHeaders(written, { 'x-ms-request-server-encrypted': 'true' }),
    }),
  }),
  operation({
    name: 'Append Block',
    route,
    query: { comp: 'appendblock' },
    permission: ['add', 'write'],
    conditions: ALL_CONDITIONS,
    returnsETag: true,
    test: TEST,
    unsupported: VERSION_PARAMS,
    unsupportedUnlessLenient: ENCRYPTION,
    input: {
      ...target,
      append: appendConditions,
      wantsMd5: beforeCrc64,
      size: sizeLimit(APPEND_BLOCK_SIZES),
      body: structuredContent({ bytesMax: APPEND_BLOCK_SIZES[0]![1] }),
    },
    precheck: precheckAppendBlock,
    run: appendBlock,
    reply: ({ written, md5, crc64 }, request) => ({
      status: 201,
      headers: validatorHeaders(written, {
        'Content-MD5': md5,
        'x-ms-content-crc64': md5 === undefined ? crc64 : undefined,
        'x-ms-structured-body': structuredType(request),
        'x-ms-blob-append-offset': written.result.offset,
        'x-ms-blob-committed-block-count': written.result.blocks,
        'x-ms-request-server-encrypted': 'true',
      }),
    }),
  }),
  operation({
    name: 'Append Block From URL',
    route,
    query: { comp: 'appendblock' },
    when: { 'x-ms-copy-source': true },
    permission: ['add', 'write'],
    readsCopySource: 'by its credential',
    conditions: ALL_CONDITIONS,
    returnsETag: true,
    test: TEST,
    unsupported: UNSUPPORTED_OF_SOURCES,
    unsupportedUnlessLenient: ENCRYPTION,
    input: {
      ...target,
      ...sourceParams,
      sourceRange,
      append: appendConditions,
      wantsMd5: wantsBlockMd5,
      sourceBytesMax: sourceBytesMax(APPEND_BLOCK_SIZES),
    },
    run: async (storage, input) => ({ copied: await appendBlockFromUrl(storage, input), wantsMd5: input.wantsMd5 }),
    reply: ({ copied, wantsMd5 }) => ({
      status: 201,
      headers: validatorHeaders(copied.written, {
        ...hashHeaders(copied, wantsMd5),
        'x-ms-blob-append-offset': copied.written.result.offset,
        'x-ms-blob-committed-block-count': copied.written.result.blocks,
        'x-ms-request-server-encrypted': 'true',
      }),
    }),
  }),
  operation({
    name: 'Append Blob Seal',
    route,
    query: { comp: 'seal' },
    permission: 'write',
    conditions: ALL_CONDITIONS,
    returnsETag: true,
    test: TEST,
    unsupported: [...VERSION_PARAMS, 'x-ms-if-tags'],
    input: { ...target, append: appendConditions },
    run: sealBlob,
    reply: (written) => ({ status: 200, headers: validatorHeaders(written, { 'x-ms-blob-sealed': 'true' }) }),
  }),
];
