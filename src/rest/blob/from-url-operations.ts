/** The operations "From URL" on the wire. */
import { copyBlobFromUrl, putBlobFromUrl, putBlockFromUrl } from '../../services/blob/from-url.ts';
import type { Storage } from '../../services/common/storage.ts';
import {
  copiesTags,
  copySource,
  sourceBytesMax,
  sourceConditions,
  sourceRange,
  sourceTagConditions,
} from '../copy-source.ts';
import { type ConditionHeader, type Operation, operationOn } from '../operation.ts';
import {
  blobContentHeaders,
  booleanHeader,
  header,
  leaseId,
  metadata,
  noContent,
  pathPart,
  reader,
  rejectConditions,
  sourceHashes,
} from '../params.ts';
import { validatorHeaders } from '../reply.ts';
import {
  beforeCrc64,
  COPY_FROM_URL_SIZES,
  conditions,
  ENCRYPTION,
  IMMUTABILITY,
  PUT_BLOB_SIZES,
  PUT_BLOCK_SIZES,
  rejectSnapshot,
  requiredQuery,
  VERSION_PARAMS,
} from './params.ts';

const operation = operationOn<Storage>();
const route = 'PUT /{container}/{blob}' as const;
const TEST = 'test/end-to-end/from-url.test.ts';
const ALL_CONDITIONS: ConditionHeader[] = ['If-Match', 'If-None-Match', 'If-Modified-Since', 'If-Unmodified-Since'];

export const UNSUPPORTED_OF_SOURCES = [
  ...VERSION_PARAMS,
  'x-ms-source-encryption-key',
  'x-ms-source-encryption-key-sha256',
  'x-ms-source-encryption-algorithm',
  'x-ms-file-request-intent',
];
const BLOB_FEATURES = [...IMMUTABILITY, ...ENCRYPTION];

const target = { container: pathPart(0), blob: pathPart(1), base: rejectSnapshot, leaseId };
export const sourceParams = {
  source: copySource('by its credential'),
  sourceConditions,
  sourceHashes,
  body: noContent,
};
const copiesProperties = reader((request) => booleanHeader('x-ms-copy-source-blob-properties').read(request) ?? true);

/** A request that states an MD5 gets it back. */
export const wantsBlockMd5 = reader(
  (request) => beforeCrc64.read(request) || request.headers['x-ms-source-content-md5'] !== undefined,
);

interface Copied {
  readonly md5: string | undefined;
  readonly crc64: string;
}

/** The hash that the version has in replies. */
export const hashHeaders = ({ md5, crc64 }: Copied, wantsMd5: boolean) => ({
  'Content-MD5': wantsMd5 ? md5 : undefined,
  'x-ms-content-crc64': wantsMd5 ? undefined : crc64,
});

/** The columns that both operations have which make a blob. */
const newBlobRow = {
  route,
  permission: ['write', 'create'] as const,
  readsCopySource: 'by its credential' as const,
  conditions: ALL_CONDITIONS,
  returnsETag: true,
  test: TEST,
  unsupported: UNSUPPORTED_OF_SOURCES,
  unsupportedUnlessLenient: BLOB_FEATURES,
};
const newBlobParams = {
  ...target,
  ...sourceParams,
  conditions,
  metadata,
  tier: header('x-ms-access-tier'),
  tags: header('x-ms-tags'),
  copiesTags,
};

export const fromUrlOperations: readonly Operation<Storage>[] = [
  ...[{}, { 'x-ms-requires-sync': 'true' }].map((sync) =>
    operation({
      ...newBlobRow,
      name: 'Put Blob From URL',
      when: { 'x-ms-blob-type': 'BlockBlob', 'x-ms-copy-source': true, ...sync },
      input: {
        ...newBlobParams,
        sourceConditions: sourceTagConditions,
        content: blobContentHeaders,
        copiesProperties,
        sourceBytesMax: sourceBytesMax(PUT_BLOB_SIZES),
      },
      run: putBlobFromUrl,
      reply: ({ md5: _, crc64, ...written }) => ({
        status: 201,
        headers: validatorHeaders(written, { 'x-ms-content-crc64': crc64, 'x-ms-request-server-encrypted': 'true' }),
      }),
    }),
  ),
  operation({
    ...newBlobRow,
    name: 'Copy Blob From URL',
    unsupported: ['x-ms-source-if-tags', ...UNSUPPORTED_OF_SOURCES],
    when: { 'x-ms-copy-source': true, 'x-ms-requires-sync': 'true' },
    input: { ...newBlobParams, wantsMd5: beforeCrc64, sourceBytesMax: sourceBytesMax(COPY_FROM_URL_SIZES) },
    run: async (storage, input) => ({ ...(await copyBlobFromUrl(storage, input)), wantsMd5: input.wantsMd5 }),
    reply: ({ copyId, wantsMd5, ...copied }) => ({
      status: 202,
      headers: validatorHeaders(copied, {
        'x-ms-copy-id': copyId,
        'x-ms-copy-status': 'success',
        ...hashHeaders(copied, wantsMd5),
        'x-ms-request-server-encrypted': 'true',
      }),
    }),
  }),
  operation({
    name: 'Put Block From URL',
    route,
    query: { comp: 'block' },
    when: { 'x-ms-copy-source': true },
    permission: 'write',
    readsCopySource: 'by its credential',
    test: TEST,
    unsupported: ['x-ms-if-tags', 'x-ms-source-if-tags', ...UNSUPPORTED_OF_SOURCES],
    unsupportedUnlessLenient: ENCRYPTION,
    input: {
      ...target,
      ...sourceParams,
      conditions: rejectConditions,
      blockId: requiredQuery('blockid'),
      sourceRange,
      wantsMd5: wantsBlockMd5,
      sourceBytesMax: sourceBytesMax(PUT_BLOCK_SIZES),
    },
    run: async (storage, input) => ({ copied: await putBlockFromUrl(storage, input), wantsMd5: input.wantsMd5 }),
    reply: ({ copied, wantsMd5 }) => ({
      status: 201,
      headers: { ...hashHeaders(copied, wantsMd5), 'x-ms-request-server-encrypted': 'true' },
    }),
  }),
];
