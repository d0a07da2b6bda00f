/** The Blob service on the wire: one row per operation, in the order of Microsoft's REST reference. */
import { formatIso7, formatRfc1123 } from '../../base/time.ts';
import type { Validators } from '../../rules/conditions.ts';
import type { LeaseState } from '../../rules/lease.ts';
import { deleteBlob, getBlob, getBlobProperties, setBlobMetadata } from '../../services/blob/blobs.ts';
import { putBlockList } from '../../services/blob/block-lists.ts';
import { getBlockList, precheckPutBlock, putBlock } from '../../services/blob/blocks.ts';
import {
  createContainer,
  deleteContainer,
  getContainerProperties,
  renameContainer,
  setContainerAcl,
  setContainerMetadata,
} from '../../services/blob/containers.ts';
import { copyBlob } from '../../services/blob/copies.ts';
import { restoreContainer } from '../../services/blob/deleted-containers.ts';
import { leaseBlob, leaseContainer } from '../../services/blob/leases.ts';
import { type ListedContainer, listContainers } from '../../services/blob/list-containers.ts';
import { listBlobs } from '../../services/blob/listing.ts';
import { abortCopy } from '../../services/blob/pending-copies.ts';
import { precheckPutBlob, putBlob } from '../../services/blob/put-blob.ts';
import { type Blob, blobTypeOf, type Metadata } from '../../services/blob/rows.ts';
import { snapshotBlob } from '../../services/blob/snapshots.ts';
import { setBlobTier } from '../../services/blob/tiers.ts';
import { undeleteBlob } from '../../services/blob/undelete.ts';
import type { Storage } from '../../services/common/storage.ts';
import { addCopyHeaders } from '../copy-reply.ts';
import { copySource, requireAbortAction, requireAsyncCopy, sourceTagConditions } from '../copy-source.ts';
import { prepend, streamAsProduced } from '../http/streamed.ts';
import { leaseDuration, leaseHeaders, leaseStatus } from '../lease-reply.ts';
import { leaseParams, leaseReply } from '../lease-request.ts';
import { type ConditionHeader, type Operation, operationOn, type Request } from '../operation.ts';
import {
  blobContentHeaders,
  booleanHeader,
  contentBody,
  contentHeaders,
  dateConditions,
  header,
  integerQuery,
  leaseId,
  listQuery,
  metadata,
  pathPart,
  query,
  range,
  reader,
  rejectConditions,
  requiredHeader,
  xmlBody,
} from '../params.ts';
import {
  estimateListBytes,
  metadataHeaders,
  PAGE_BYTES,
  type Reply,
  streamedXmlReply,
  validatorHeaders,
  xmlReply,
} from '../reply.ts';
import { accountUrl } from '../request.ts';
import { serviceOperations } from '../service-operations.ts';
import { structuredReply } from '../structured-body/encoded-reply.ts';
import { structuredType } from '../structured-body/headers.ts';
import { structuredContent } from '../structured-body/structured-content.ts';
import { parsePolicies, policiesXml } from '../xml/access-policies.ts';
import { appendOperations } from './append-operations.ts';
import { batchOperations } from './batch.ts';
import { appendHeaders, BLOB_TYPES, incrementalHeaders, pageHeaders } from './blob-types.ts';
import { BLOCK_LIST_BYTES_MAX, blockElements, blockListXml, readBlockList } from './block-lists.ts';
import { fromUrlOperations } from './from-url-operations.ts';
import {
  blobListElements,
  blobListEnd,
  blobListStart,
  containerElements,
  containerListEnd,
  containerListStart,
} from './list-xml.ts';
import { notImplementedOperations } from './not-implemented.ts';
import { pageOperations, setBlobPropertiesRow } from './page-operations.ts';
import {
  beforeCrc64,
  blockListType,
  conditions,
  deleteSnapshots,
  ENCRYPTION,
  IMMUTABILITY,
  normalizeSlashes,
  PUT_BLOB_SIZES,
  PUT_BLOCK_SIZES,
  permanentDelete,
  publicAccess,
  rejectSnapshot,
  requiredQuery,
  showOnlyDeleted,
  sizeLimit,
  snapshot,
  tagConditions,
  tierConditions,
  VERSION_PARAMS,
} from './params.ts';
import { tagOperations } from './tag-operations.ts';
import { tierHeaders } from './tier-reply.ts';

const operation = operationOn<Storage>();
const container = pathPart(0);
const blob = pathPart(1);
const tags = header('x-ms-tags');

/** The first version whose account information tells whether names form a hierarchy. */
const HIERARCHY_SINCE = '2019-07-07';

const SHAPES = ['/', '/{container}', '/{container}/{blob}'] as const;

const DATE_CONDITIONS: ConditionHeader[] = ['If-Modified-Since', 'If-Unmodified-Since'];
const ALL_CONDITIONS: ConditionHeader[] = ['If-Match', 'If-None-Match', ...DATE_CONDITIONS];

/** Headers of a feature that is not implemented. They would change neither the reply, nor the stored data, nor the outcome. */
const CONTAINER_ENCRYPTION = ['x-ms-default-encryption-scope', 'x-ms-deny-encryption-scope-override'];

const accessTier = header('x-ms-access-tier');
const rehydratePriority = header('x-ms-rehydrate-priority');
/** The first version in which Get Blob answers with the tier, as Get Blob Properties does. */
const GET_BLOB_TIER_VERSION = '2026-10-06';

const SNAPSHOT_HEADER_UNTIL = '2019-02-02';

/** The delete permission suffices to break a lease, but for no other lease action. */
const LEASE_PERMISSIONS = [
  { when: {}, permission: 'write' },
  { when: { 'x-ms-lease-action': 'break' }, permission: ['write', 'delete'] },
] as const;
/** The retention of a deleted snapshot is ended by a right of its own. */
const DELETE_PERMISSIONS = [
  { type: {}, permission: 'delete' },
  { type: { deletetype: 'permanent' }, permission: 'permanent delete' },
] as const;
/** A public container exposes committed data; uncommitted blocks require a credential. */
const BLOCK_LISTS = [
  { type: {}, anonymous: true },
  { type: { blocklisttype: 'uncommitted' }, anonymous: false },
  { type: { blocklisttype: 'all' }, anonymous: false },
];
const listParams = {
  prefix: query('prefix'),
  marker: query('marker'),
  resultsMax: integerQuery('maxresults', { min: 1, max: 2 ** 31 - 1 }),
};

const singleOperations: readonly Operation<Storage>[] = [
  operation({
    name: 'List Containers',
    route: 'GET /',
    query: { comp: 'list' },
    permission: 'list',
    test: 'test/end-to-end/list-containers.test.ts',
    input: { ...listParams, include: listQuery('include', ['metadata', 'deleted', 'system']) },
    replyBytes: estimateListBytes,
    run: async (storage, input) => {
      const { include } = input;
      const listInput = { ...input, system: include.includes('system'), deleted: include.includes('deleted') };
      const withMetadata = include.includes('metadata');
      const pieces = await streamAsProduced(async (append) => {
        const emit = (containers: readonly ListedContainer[]) => append(containerElements(containers, withMetadata));
        append(containerListEnd(await listContainers(storage, listInput, emit)));
      });
      return { input, pieces };
    },
    reply: ({ input, pieces }, request) =>
      streamedXmlReply(200, prepend(containerListStart(accountUrl(request), input), pieces)),
  }),
  ...serviceOperations('blob', SHAPES),
  ...SHAPES.map((shape) =>
    operation({
      name: 'Get Account Information',
      route: `GET|HEAD ${shape}`,
      query: { comp: 'properties', restype: 'account' },
      permission: 'any',
      test: 'test/end-to-end/account-information.test.ts',
      input: {},
      run: async () => undefined,
      reply: (_, { version }) => ({
        status: 200,
        headers: {
          'x-ms-sku-name': 'Standard_LRS',
          'x-ms-account-kind': 'StorageV2',
          'x-ms-is-hns-enabled': version !== '' && version < HIERARCHY_SINCE ? undefined : 'false',
        },
      }),
    }),
  ),

  operation({
    name: 'Create Container',
    route: 'PUT /{container}',
    query: { restype: 'container' },
    permission: ['create', 'write'],
    returnsETag: true,
    test: 'test/end-to-end/create-container.test.ts',
    unsupportedUnlessLenient: CONTAINER_ENCRYPTION,
    input: { container, metadata, access: publicAccess },
    run: createContainer,
    reply: (made) => ({ status: 201, headers: validatorHeaders(made) }),
  }),
  operation({
    name: 'Get Container Properties',
    route: 'GET|HEAD /{container}',
    query: { restype: 'container' },
    permission: 'read',
    returnsETag: true,
    test: 'test/end-to-end/container-properties.test.ts',
    input: { container, leaseId },
    run: getContainerProperties,
    reply: ({ container: found, leaseState }) => ({
      status: 200,
      headers: {
        ...validatorHeaders(found),
        ...metadataHeaders(found.metadata),
        ...leaseHeaders(found.lease, leaseState),
        'x-ms-blob-public-access': found.access,
        'x-ms-default-encryption-scope': '$account-encryption-key',
        'x-ms-deny-encryption-scope-override': 'false',
        'x-ms-has-immutability-policy': 'false',
        'x-ms-has-legal-hold': 'false',
        'x-ms-immutable-storage-with-versioning-enabled': 'false',
      },
    }),
  }),
  operation({
    name: 'Get Container Metadata',
    route: 'GET|HEAD /{container}',
    query: { restype: 'container', comp: 'metadata' },
    permission: 'read',
    returnsETag: true,
    test: 'test/end-to-end/container-metadata.test.ts',
    input: { container, leaseId },
    run: getContainerProperties,
    reply: ({ container: found }) => metadataReply(found),
  }),
  operation({
    name: 'Set Container Metadata',
    route: 'PUT /{container}',
    query: { restype: 'container', comp: 'metadata' },
    permission: 'write',
    conditions: ['If-Modified-Since'],
    returnsETag: true,
    test: 'test/end-to-end/container-metadata.test.ts',
    input: { container, leaseId, conditions: dateConditions, metadata },
    run: setContainerMetadata,
    reply: (written) => ({ status: 200, headers: validatorHeaders(written) }),
  }),
  operation({
    name: 'Get Container ACL',
    route: 'GET|HEAD /{container}',
    query: { restype: 'container', comp: 'acl' },
    permission: 'owner',
    returnsETag: true,
    test: 'test/end-to-end/container-acl.test.ts',
    input: { container, leaseId },
    run: getContainerProperties,
    reply: ({ container: found }) =>
      xmlReply(200, policiesXml(found.policies), {
        ...validatorHeaders(found),
        'x-ms-blob-public-access': found.access,
      }),
  }),
  operation({
    name: 'Set Container ACL',
    route: 'PUT /{container}',
    query: { restype: 'container', comp: 'acl' },
    permission: 'owner',
    conditions: DATE_CONDITIONS,
    returnsETag: true,
    test: 'test/end-to-end/container-acl.test.ts',
    input: {
      container,
      leaseId,
      conditions: dateConditions,
      access: publicAccess,
      document: xmlBody('SignedIdentifiers'),
    },
    run: (storage, input) => setContainerAcl(storage, { ...input, policies: parsePolicies(input.document, 'blob') }),
    reply: (written) => ({ status: 200, headers: validatorHeaders(written) }),
  }),
  operation({
    name: 'Delete Container',
    route: 'DELETE /{container}',
    query: { restype: 'container' },
    permission: 'delete',
    conditions: DATE_CONDITIONS,
    test: 'test/end-to-end/delete-container.test.ts',
    input: { container, leaseId, conditions: dateConditions },
    run: deleteContainer,
    reply: () => ({ status: 202 }),
  }),
  operation({
    name: 'Restore Container',
    route: 'PUT /{container}',
    query: { restype: 'container', comp: 'undelete' },
    permission: ['create', 'write'],
    test: 'test/end-to-end/restore-container.test.ts',
    input: {
      container,
      deletedName: requiredHeader('x-ms-deleted-container-name'),
      deletedVersion: requiredHeader('x-ms-deleted-container-version'),
    },
    run: restoreContainer,
    reply: () => ({ status: 201 }),
  }),
  operation({
    name: 'Rename Container',
    route: 'PUT /{container}',
    query: { restype: 'container', comp: 'rename' },
    permission: 'owner',
    test: 'test/end-to-end/rename-container.test.ts',
    input: {
      container,
      source: requiredHeader('x-ms-source-container-name'),
      sourceLeaseId: header('x-ms-source-lease-id'),
    },
    run: renameContainer,
    reply: () => ({ status: 200 }),
  }),
  ...LEASE_PERMISSIONS.map(({ when, permission }) =>
    operation({
      name: 'Lease Container',
      route: 'PUT /{container}',
      query: { restype: 'container', comp: 'lease' },
      when,
      permission,
      conditions: DATE_CONDITIONS,
      returnsETag: true,
      test: 'test/end-to-end/lease-container.test.ts',
      input: { container, conditions: dateConditions, ...leaseParams },
      run: async (storage, input) => ({ ...(await leaseContainer(storage, input)), action: input.action }),
      reply: leaseReply,
    }),
  ),
  operation({
    name: 'List Blobs',
    route: 'GET /{container}',
    query: { restype: 'container', comp: 'list' },
    permission: 'list',
    test: 'test/end-to-end/list-blobs.test.ts',
    input: {
      container,
      ...listParams,
      delimiter: query('delimiter'),
      startFrom: query('startFrom'),
      endBefore: query('endBefore'),
      onlyDeleted: showOnlyDeleted,
      // The other values belong to features that are not implemented, so there is nothing to include.
      include: listQuery('include', [
        'metadata',
        'copy',
        'deleted',
        'deletedwithversions',
        'immutabilitypolicy',
        'legalhold',
        'snapshots',
        'tags',
        'uncommittedblobs',
        'versions',
      ]),
    },
    replyBytes: estimateListBytes,
    run: async (storage, input) => {
      const { include } = input;
      const included = {
        metadata: include.includes('metadata'),
        copy: include.includes('copy'),
        tags: include.includes('tags'),
      };
      const prefix = input.prefix && normalizeSlashes(input.prefix);
      const startFrom = input.startFrom && normalizeSlashes(input.startFrom);
      const uncommitted = include.includes('uncommittedblobs');
      const states = { snapshots: include.includes('snapshots'), deleted: include.includes('deleted') };
      const listInput = { ...input, prefix, startFrom, uncommitted, ...states };
      const pieces = await streamAsProduced(async (append) => {
        append(blobListEnd(await listBlobs(storage, listInput, (items) => append(blobListElements(items, included)))));
      });
      return { input, pieces };
    },
    reply: ({ input, pieces }, request) =>
      streamedXmlReply(200, prepend(blobListStart(accountUrl(request), input), pieces)),
  }),

  operation({
    name: 'Put Blob',
    route: 'PUT /{container}/{blob}',
    when: { 'x-ms-blob-type': 'BlockBlob' },
    permission: ['write', 'create'],
    conditions: ALL_CONDITIONS,
    returnsETag: true,
    test: 'test/end-to-end/put-blob.test.ts',
    unsupported: [...VERSION_PARAMS],
    unsupportedUnlessLenient: ['x-ms-expiry-option', ...ENCRYPTION, ...IMMUTABILITY],
    input: {
      container,
      blob,
      base: rejectSnapshot,
      conditions,
      leaseId,
      content: contentHeaders,
      metadata,
      tier: accessTier,
      tags,
      size: sizeLimit(PUT_BLOB_SIZES),
      body: structuredContent({
        bytesMax: PUT_BLOB_SIZES[0]![1],
        md5Headers: ['x-ms-blob-content-md5', 'content-md5'],
      }),
    },
    precheck: precheckPutBlob,
    run: putBlob,
    reply: (written, request) => ({
      status: 201,
      headers: validatorHeaders(written, {
        'Content-MD5': written.md5,
        'x-ms-content-crc64': written.crc64,
        'x-ms-structured-body': structuredType(request),
        'x-ms-request-server-encrypted': 'true',
      }),
    }),
  }),
  operation({
    name: 'Get Blob',
    route: 'GET /{container}/{blob}',
    permission: 'read',
    conditions: ALL_CONDITIONS,
    returnsETag: true,
    test: 'test/end-to-end/get-blob.test.ts',
    unsupported: [...VERSION_PARAMS],
    unsupportedUnlessLenient: ENCRYPTION,
    input: {
      container,
      blob,
      snapshot,
      conditions,
      leaseId,
      range,
      rangeMd5: booleanHeader('x-ms-range-get-content-md5'),
      rangeCrc64: booleanHeader('x-ms-range-get-content-crc64'),
      structuredType: reader(structuredType),
    },
    run: getBlob,
    reply: ({ blob: found, leaseState, tier, bytes, length, range, rangeMd5, rangeCrc64 }, request) => {
      const headers = blobHeaders(found, leaseState);
      headers['x-ms-snapshot'] = snapshotHeader(found, request);
      if (request.version >= GET_BLOB_TIER_VERSION) Object.assign(headers, tierHeaders(found, tier));
      headers['Content-MD5'] = range ? rangeMd5 : found.content.contentMd5;
      headers['x-ms-blob-content-md5'] = range && found.content.contentMd5;
      headers['x-ms-content-crc64'] = rangeCrc64;
      headers['Content-Length'] = length;
      headers['Content-Range'] = range && `bytes ${range.from}-${range.to}/${found.length}`;
      const status = range ? 206 : 200;
      return structuredType(request) === undefined
        ? { status, headers, body: bytes }
        : structuredReply({ status, headers }, bytes, length, request);
    },
  }),
  operation({
    name: 'Get Blob Properties',
    route: 'HEAD /{container}/{blob}',
    permission: 'read',
    conditions: ALL_CONDITIONS,
    returnsETag: true,
    test: 'test/end-to-end/get-blob-properties.test.ts',
    unsupported: VERSION_PARAMS,
    unsupportedUnlessLenient: ENCRYPTION,
    input: { container, blob, snapshot, conditions, leaseId },
    run: getBlobProperties,
    reply: ({ blob: found, leaseState, tier }, request) => {
      const headers = blobHeaders(found, leaseState);
      headers['x-ms-snapshot'] = snapshotHeader(found, request);
      headers['Content-MD5'] = found.content.contentMd5;
      headers['Content-Length'] = found.length;
      return { status: 200, headers: Object.assign(headers, tierHeaders(found, tier)) };
    },
  }),
  operation({
    name: 'Get Blob Metadata',
    route: 'GET|HEAD /{container}/{blob}',
    query: { comp: 'metadata' },
    permission: 'read',
    conditions: ALL_CONDITIONS,
    returnsETag: true,
    test: 'test/end-to-end/blob-metadata.test.ts',
    unsupported: VERSION_PARAMS,
    unsupportedUnlessLenient: ENCRYPTION,
    input: { container, blob, snapshot, conditions, leaseId },
    run: getBlobProperties,
    reply: ({ blob: found }) => metadataReply(found),
  }),
  operation({
    name: 'Set Blob Metadata',
    route: 'PUT /{container}/{blob}',
    query: { comp: 'metadata' },
    permission: 'write',
    conditions: ALL_CONDITIONS,
    returnsETag: true,
    test: 'test/end-to-end/blob-metadata.test.ts',
    unsupported: VERSION_PARAMS,
    unsupportedUnlessLenient: ENCRYPTION,
    input: { container, blob, base: rejectSnapshot, conditions, leaseId, metadata },
    run: setBlobMetadata,
    reply: (written) => ({
      status: 200,
      headers: validatorHeaders(written, { 'x-ms-request-server-encrypted': 'true' }),
    }),
  }),
  setBlobPropertiesRow,
  ...DELETE_PERMISSIONS.map(({ type, permission }) =>
    operation({
      name: 'Delete Blob',
      route: 'DELETE /{container}/{blob}',
      query: type,
      permission,
      conditions: ALL_CONDITIONS,
      test: 'test/end-to-end/delete-blob.test.ts',
      unsupported: VERSION_PARAMS,
      input: {
        container,
        blob,
        snapshot,
        conditions,
        tierConditions,
        leaseId,
        snapshots: deleteSnapshots,
        permanent: permanentDelete,
      },
      run: deleteBlob,
      reply: ({ isPermanent }) => ({ status: 202, headers: { 'x-ms-delete-type-permanent': String(isPermanent) } }),
    }),
  ),
  operation({
    name: 'Undelete Blob',
    route: 'PUT /{container}/{blob}',
    query: { comp: 'undelete' },
    permission: 'write',
    test: 'test/end-to-end/soft-delete.test.ts',
    unsupported: VERSION_PARAMS,
    input: { container, blob, base: rejectSnapshot, conditions: rejectConditions },
    run: undeleteBlob,
    reply: () => ({ status: 200 }),
  }),
  ...LEASE_PERMISSIONS.map(({ when, permission }) =>
    operation({
      name: 'Lease Blob',
      route: 'PUT /{container}/{blob}',
      query: { comp: 'lease' },
      when,
      permission,
      conditions: ALL_CONDITIONS,
      returnsETag: true,
      test: 'test/end-to-end/lease-blob.test.ts',
      unsupported: VERSION_PARAMS,
      input: { container, blob, base: rejectSnapshot, conditions, ...leaseParams },
      run: async (storage, input) => ({ ...(await leaseBlob(storage, input)), action: input.action }),
      reply: leaseReply,
    }),
  ),
  operation({
    name: 'Snapshot Blob',
    route: 'PUT /{container}/{blob}',
    query: { comp: 'snapshot' },
    permission: ['write', 'create'],
    conditions: ALL_CONDITIONS,
    returnsETag: true,
    test: 'test/end-to-end/snapshot-blob.test.ts',
    unsupported: VERSION_PARAMS,
    unsupportedUnlessLenient: ENCRYPTION,
    input: { container, blob, base: rejectSnapshot, conditions, leaseId, metadata },
    run: snapshotBlob,
    reply: ({ snapshot: stamp, ...taken }) => ({
      status: 201,
      headers: validatorHeaders(taken, {
        'x-ms-snapshot': formatIso7(stamp),
        // The snapshot shares the bytes of its blob: this request has encrypted none.
        'x-ms-request-server-encrypted': 'false',
      }),
    }),
  }),
  operation({
    name: 'Set Blob Tier',
    route: 'PUT /{container}/{blob}',
    query: { comp: 'tier' },
    permission: 'write',
    test: 'test/end-to-end/set-blob-tier.test.ts',
    unsupported: VERSION_PARAMS,
    input: {
      container,
      blob,
      snapshot,
      conditions: tagConditions,
      leaseId,
      tier: requiredHeader('x-ms-access-tier'),
      priority: rehydratePriority,
    },
    run: setBlobTier,
    reply: ({ isPending }) => ({ status: isPending ? 202 : 200 }),
  }),
  operation({
    name: 'Copy Blob',
    route: 'PUT /{container}/{blob}',
    when: { 'x-ms-copy-source': true },
    permission: ['write', 'create'],
    readsCopySource: 'as owner',
    conditions: ALL_CONDITIONS,
    returnsETag: true,
    test: 'test/end-to-end/copy-blob.test.ts',
    unsupported: ['x-ms-source-content-md5', ...VERSION_PARAMS],
    unsupportedUnlessLenient: [
      'x-ms-copy-source-authorization',
      'x-ms-copy-source-tag-option',
      ...ENCRYPTION,
      ...IMMUTABILITY,
    ],
    input: {
      container,
      blob,
      base: rejectSnapshot,
      conditions,
      leaseId,
      source: copySource('as owner'),
      sourceConditions: sourceTagConditions,
      sourceLeaseId: header('x-ms-source-lease-id'),
      metadata,
      tier: accessTier,
      priority: rehydratePriority,
      tags,
      seals: booleanHeader('x-ms-seal-blob'),
      sync: requireAsyncCopy,
    },
    run: copyBlob,
    reply: ({ copyId, copyStatus, ...written }) => ({
      status: 202,
      headers: validatorHeaders(written, { 'x-ms-copy-id': copyId, 'x-ms-copy-status': copyStatus }),
    }),
  }),
  operation({
    name: 'Abort Copy Blob',
    route: 'PUT /{container}/{blob}',
    query: { comp: 'copy' },
    permission: 'write',
    test: 'test/end-to-end/copy-blob.test.ts',
    input: {
      container,
      blob,
      base: rejectSnapshot,
      conditions: rejectConditions,
      leaseId,
      copyId: requiredQuery('copyid'),
      action: requireAbortAction,
    },
    run: abortCopy,
    reply: () => ({ status: 204 }),
  }),

  operation({
    name: 'Put Block',
    route: 'PUT /{container}/{blob}',
    query: { comp: 'block' },
    permission: 'write',
    test: 'test/end-to-end/put-block.test.ts',
    unsupported: [...VERSION_PARAMS, 'x-ms-if-tags'],
    unsupportedUnlessLenient: ENCRYPTION,
    input: {
      container,
      blob,
      base: rejectSnapshot,
      conditions: rejectConditions,
      leaseId,
      blockId: requiredQuery('blockid'),
      wantsMd5: beforeCrc64,
      size: sizeLimit(PUT_BLOCK_SIZES),
      body: structuredContent({ bytesMax: PUT_BLOCK_SIZES[0]![1] }),
    },
    precheck: precheckPutBlock,
    run: putBlock,
    reply: ({ md5, crc64 }, request) => ({
      status: 201,
      headers: {
        'Content-MD5': md5,
        'x-ms-content-crc64': md5 === undefined ? crc64 : undefined,
        'x-ms-structured-body': structuredType(request),
        'x-ms-request-server-encrypted': 'true',
      },
    }),
  }),
  operation({
    name: 'Put Block List',
    route: 'PUT /{container}/{blob}',
    query: { comp: 'blocklist' },
    permission: 'write',
    conditions: ALL_CONDITIONS,
    returnsETag: true,
    test: 'test/end-to-end/put-block-list.test.ts',
    unsupported: VERSION_PARAMS,
    unsupportedUnlessLenient: [...ENCRYPTION, ...IMMUTABILITY],
    input: {
      container,
      blob,
      base: rejectSnapshot,
      conditions,
      leaseId,
      content: blobContentHeaders,
      metadata,
      tier: accessTier,
      tags,
      wantsMd5: beforeCrc64,
      body: contentBody({ bytesMax: BLOCK_LIST_BYTES_MAX }),
    },
    precheck: precheckPutBlob,
    run: async (storage, { wantsMd5, body, ...input }) => {
      const { blocks, hashes } = await readBlockList(body, { md5: wantsMd5 });
      return { written: await putBlockList(storage, { ...input, blocks }), hashes, wantsMd5 };
    },
    reply: ({ written, hashes, wantsMd5 }) => ({
      status: 201,
      headers: validatorHeaders(written, {
        'Content-MD5': wantsMd5 ? hashes.md5 : undefined,
        'x-ms-content-crc64': wantsMd5 ? undefined : hashes.crc64,
        'x-ms-request-server-encrypted': 'true',
      }),
    }),
  }),
  ...BLOCK_LISTS.map(({ type, anonymous }) =>
    operation({
      name: 'Get Block List',
      route: 'GET /{container}/{blob}',
      query: { comp: 'blocklist', ...type },
      permission: 'read',
      anonymous,
      returnsETag: true,
      test: 'test/end-to-end/get-block-list.test.ts',
      unsupported: VERSION_PARAMS,
      input: { container, blob, snapshot, conditions: tagConditions, leaseId, type: blockListType },
      replyBytes: () => PAGE_BYTES,
      run: (storage, input) => getBlockList(storage, input, blockElements),
      reply: (lists) => {
        const { status, headers, body } = streamedXmlReply(200, blockListXml(lists));
        const found = lists.blob && validatorHeaders(lists.blob, { 'x-ms-blob-content-length': lists.blob.length });
        return { status, headers: { ...headers, ...found }, body };
      },
    }),
  ),
  ...appendOperations,
  ...pageOperations,
  ...fromUrlOperations,
  ...tagOperations,
  ...notImplementedOperations,
];

export const blobOperations: readonly Operation<Storage>[] = [
  ...singleOperations,
  ...batchOperations(singleOperations),
];

function metadataReply(found: Validators & { readonly metadata: Metadata }): Reply {
  return { status: 200, headers: validatorHeaders(found, metadataHeaders(found.metadata)) };
}

/** Versions before 2019-02-02 have it in reads of a snapshot. */
function snapshotHeader({ snapshot: stamp }: Blob, { version }: Request): string | undefined {
  return stamp === undefined || version === '' || version >= SNAPSHOT_HEADER_UNTIL ? undefined : formatIso7(stamp);
}

/** One object literal: spreading several into each other would cost more than the rest of Get Blob's reply. */
function blobHeaders(found: Blob, leaseState: LeaseState): Record<string, string | number | undefined> {
  const { content, metadata } = found;
  // A snapshot has no lease.
  const isBase = found.snapshot === undefined;
  const headers: Record<string, string | number | undefined> = {
    ETag: `"${found.etag}"`,
    'Last-Modified': formatRfc1123(found.modified),
    'Accept-Ranges': 'bytes',
    'Content-Type': content.contentType,
    'Content-Encoding': content.contentEncoding,
    'Content-Language': content.contentLanguage,
    'Content-Disposition': content.contentDisposition,
    'Cache-Control': content.cacheControl,
    'x-ms-blob-type': BLOB_TYPES[blobTypeOf(found)],
    'x-ms-creation-time': formatRfc1123(found.created),
    'x-ms-server-encrypted': 'true',
    'x-ms-lease-status': isBase ? leaseStatus(leaseState) : undefined,
    'x-ms-lease-state': isBase ? leaseState : undefined,
    'x-ms-lease-duration': leaseDuration(found.lease, leaseState),
    'x-ms-tag-count': found.tags.length || undefined,
  };
  for (const name in metadata) headers[`x-ms-meta-${name}`] = metadata[name];
  if (found.append) Object.assign(headers, appendHeaders(found.append));
  if (found.page) Object.assign(headers, pageHeaders(found.page), incrementalHeaders(found.page, found.copy));
  if (found.copy) addCopyHeaders(headers, found.copy);
  return headers;
}
