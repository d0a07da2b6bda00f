/** Operations on shares: one row each, in the order of Microsoft's REST reference. */
import { formatIso7 } from '../../base/time.ts';
import type { Storage } from '../../services/common/storage.ts';
import { restoreShare } from '../../services/file/deleted-shares.ts';
import { type ListedShare, listShares } from '../../services/file/list-shares.ts';
import { leaseShare } from '../../services/file/share-leases.ts';
import { deleteShareSnapshot, snapshotShare } from '../../services/file/share-snapshots.ts';
import {
  createShare,
  deleteShare,
  getShareProperties,
  getShareStats,
  setShareAcl,
  setShareMetadata,
  setShareProperties,
} from '../../services/file/shares.ts';
import { prepend, streamAsProduced } from '../http/streamed.ts';
import { leaseParams, leaseReply } from '../lease-request.ts';
import { type Operation, operationOn } from '../operation.ts';
import {
  header,
  integerHeader,
  integerQuery,
  leaseId,
  listQuery,
  metadata,
  pathPart,
  query,
  reader,
  requiredHeader,
  xmlBody,
} from '../params.ts';
import { estimateListBytes, metadataHeaders, streamedXmlReply, validatorHeaders, xmlReply } from '../reply.ts';
import { accountUrl } from '../request.ts';
import { parsePolicies, policiesXml } from '../xml/access-policies.ts';
import { shareElements, shareListEnd, shareListStart } from './list-xml.ts';
import { snapshot } from './params.ts';
import { deleteSnapshots, enabledProtocols, PREMIUM, rootSquash } from './share-params.ts';
import { shareHeaders, shareStatsXml } from './share-reply.ts';

const operation = operationOn<Storage>();
const share = pathPart(0);
const version = reader((request) => request.version);

export const listSharesRow: Operation<Storage> = operation({
  name: 'List Shares',
  route: 'GET /',
  query: { comp: 'list' },
  permission: 'list',
  test: 'test/end-to-end/file-shares.test.ts',
  input: {
    prefix: query('prefix'),
    marker: query('marker'),
    resultsMax: integerQuery('maxresults', { min: 1, max: 2 ** 31 - 1 }),
    include: listQuery('include', ['metadata', 'deleted', 'snapshots']),
    version,
  },
  replyBytes: estimateListBytes,
  run: async (storage, input) => {
    const { include } = input;
    const [deleted, snapshots] = [include.includes('deleted'), include.includes('snapshots')];
    const withMetadata = include.includes('metadata');
    const pieces = await streamAsProduced(async (append) => {
      const emit = (shares: readonly ListedShare[]) => append(shareElements(shares, input.version, withMetadata));
      append(shareListEnd(await listShares(storage, { ...input, deleted, snapshots }, emit)));
    });
    return { input, pieces };
  },
  reply: ({ input, pieces }, request) =>
    streamedXmlReply(200, prepend(shareListStart(accountUrl(request), input), pieces)),
});

const settings = {
  quota: integerHeader('x-ms-share-quota'),
  tier: header('x-ms-access-tier'),
  rootSquash,
};
/** The delete permission suffices to break a lease, but for no other lease action. */
const LEASE_PERMISSIONS = [
  { when: {}, permission: 'write' },
  { when: { 'x-ms-lease-action': 'break' }, permission: ['write', 'delete'] },
] as const;
const TEST = 'test/end-to-end/file-shares.test.ts';

export const shareOperations: readonly Operation<Storage>[] = [
  operation({
    name: 'Create Share',
    route: 'PUT /{share}',
    query: { restype: 'share' },
    permission: ['create', 'write'],
    returnsETag: true,
    test: TEST,
    unsupported: PREMIUM,
    input: { share, metadata, ...settings, enabledProtocols },
    run: createShare,
    reply: (made) => ({ status: 201, headers: validatorHeaders(made) }),
  }),
  operation({
    name: 'Get Share Properties',
    route: 'GET|HEAD /{share}',
    query: { restype: 'share' },
    permission: 'read',
    returnsETag: true,
    test: TEST,
    input: { share, leaseId, snapshot },
    run: getShareProperties,
    reply: ({ share: found, leaseState }, request) => ({
      status: 200,
      headers: shareHeaders(found, leaseState, request.version),
    }),
  }),
  operation({
    name: 'Set Share Properties',
    route: 'PUT /{share}',
    query: { restype: 'share', comp: 'properties' },
    permission: 'write',
    returnsETag: true,
    test: TEST,
    unsupported: PREMIUM,
    input: { share, leaseId, ...settings },
    run: setShareProperties,
    reply: (written) => ({ status: 200, headers: validatorHeaders(written) }),
  }),
  operation({
    name: 'Get Share Metadata',
    route: 'GET|HEAD /{share}',
    query: { restype: 'share', comp: 'metadata' },
    permission: 'read',
    returnsETag: true,
    test: TEST,
    input: { share, leaseId, snapshot },
    run: getShareProperties,
    reply: ({ share: found }) => ({
      status: 200,
      headers: { ...validatorHeaders(found), ...metadataHeaders(found.metadata) },
    }),
  }),
  operation({
    name: 'Set Share Metadata',
    route: 'PUT /{share}',
    query: { restype: 'share', comp: 'metadata' },
    permission: 'write',
    returnsETag: true,
    test: TEST,
    input: { share, leaseId, metadata },
    run: setShareMetadata,
    reply: (written) => ({ status: 200, headers: validatorHeaders(written) }),
  }),
  operation({
    name: 'Delete Share',
    route: 'DELETE /{share}',
    query: { restype: 'share' },
    permission: 'delete',
    test: TEST,
    input: { share, leaseId, snapshot, deleteSnapshots },
    run: (storage, { snapshot: second, ...input }) =>
      second === undefined ? deleteShare(storage, input) : deleteShareSnapshot(storage, { ...input, snapshot: second }),
    reply: () => ({ status: 202 }),
  }),
  operation({
    name: 'Get Share ACL',
    route: 'GET|HEAD /{share}',
    query: { restype: 'share', comp: 'acl' },
    permission: 'owner',
    returnsETag: true,
    test: TEST,
    input: { share, leaseId },
    run: getShareProperties,
    reply: ({ share: found }) => xmlReply(200, policiesXml(found.policies), validatorHeaders(found)),
  }),
  operation({
    name: 'Set Share ACL',
    route: 'PUT /{share}',
    query: { restype: 'share', comp: 'acl' },
    permission: 'owner',
    returnsETag: true,
    test: TEST,
    input: { share, leaseId, document: xmlBody('SignedIdentifiers') },
    run: (storage, input) => setShareAcl(storage, { ...input, policies: parsePolicies(input.document, 'file') }),
    reply: (written) => ({ status: 200, headers: validatorHeaders(written) }),
  }),
  operation({
    name: 'Get Share Stats',
    route: 'GET /{share}',
    query: { restype: 'share', comp: 'stats' },
    permission: 'read',
    returnsETag: true,
    test: TEST,
    input: { share, leaseId },
    run: getShareStats,
    reply: ({ share: found, usedBytes }, request) =>
      xmlReply(200, shareStatsXml(usedBytes, request.version), validatorHeaders(found)),
  }),
  operation({
    name: 'Snapshot Share',
    route: 'PUT /{share}',
    query: { restype: 'share', comp: 'snapshot' },
    permission: ['create', 'write'],
    test: 'test/end-to-end/file-share-snapshots.test.ts',
    input: { share, metadata },
    run: snapshotShare,
    reply: ({ snapshot: second, ...taken }) => ({
      status: 201,
      headers: validatorHeaders(taken, { 'x-ms-snapshot': formatIso7(second) }),
    }),
  }),
  operation({
    name: 'Restore Share',
    route: 'PUT /{share}',
    query: { restype: 'share', comp: 'undelete' },
    permission: ['create', 'write'],
    returnsETag: true,
    test: 'test/end-to-end/file-restore-share.test.ts',
    input: {
      share,
      deletedName: requiredHeader('x-ms-deleted-share-name'),
      deletedVersion: requiredHeader('x-ms-deleted-share-version'),
    },
    run: restoreShare,
    reply: (restored) => ({ status: 201, headers: validatorHeaders(restored) }),
  }),
  ...LEASE_PERMISSIONS.map(({ when, permission }) =>
    operation({
      name: 'Lease Share',
      route: 'PUT /{share}',
      query: { restype: 'share', comp: 'lease' },
      when,
      permission,
      returnsETag: true,
      test: 'test/end-to-end/file-share-leases.test.ts',
      input: { share, snapshot, ...leaseParams },
      run: async (storage, input) => ({ ...(await leaseShare(storage, input)), action: input.action }),
      reply: leaseReply,
    }),
  ),
];
