/** Operations on shares: one row each, in the order of Microsoft's REST reference. */
import type { Storage } from '../../services/common/storage.ts';
import { type ListedShare, listShares } from '../../services/file/list-shares.ts';
import { createShare, deleteShare, getShareProperties } from '../../services/file/shares.ts';
import { prepend, streamAsProduced } from '../http/streamed.ts';
import { type Operation, operationOn } from '../operation.ts';
import { header, integerHeader, integerQuery, listQuery, metadata, pathPart, query, reader } from '../params.ts';
import { estimateListBytes, streamedXmlReply, validatorHeaders } from '../reply.ts';
import { accountUrl } from '../request.ts';
import { shareElements, shareListEnd, shareListStart } from './list-xml.ts';
import { shareHeaders } from './share-reply.ts';

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
    include: listQuery('include', ['metadata'], ['snapshots', 'deleted']),
    version,
  },
  replyBytes: estimateListBytes,
  run: async (storage, input) => {
    const withMetadata = input.include.includes('metadata');
    const pieces = await streamAsProduced(async (append) => {
      const emit = (shares: readonly ListedShare[]) => append(shareElements(shares, input.version, withMetadata));
      append(shareListEnd(await listShares(storage, input, emit)));
    });
    return { input, pieces };
  },
  reply: ({ input, pieces }, request) =>
    streamedXmlReply(200, prepend(shareListStart(accountUrl(request), input), pieces)),
});

export const shareOperations: readonly Operation<Storage>[] = [
  operation({
    name: 'Create Share',
    route: 'PUT /{share}',
    query: { restype: 'share' },
    permission: ['create', 'write'],
    test: 'test/end-to-end/file-shares.test.ts',
    input: { share, metadata, quota: integerHeader('x-ms-share-quota'), tier: header('x-ms-access-tier') },
    run: createShare,
    reply: (made) => ({ status: 201, headers: validatorHeaders(made) }),
  }),
  operation({
    name: 'Get Share Properties',
    route: 'GET|HEAD /{share}',
    query: { restype: 'share' },
    permission: 'read',
    test: 'test/end-to-end/file-shares.test.ts',
    input: { share },
    run: getShareProperties,
    reply: ({ share: found, leaseState }, request) => ({
      status: 200,
      headers: shareHeaders(found, leaseState, request.version),
    }),
  }),
  operation({
    name: 'Delete Share',
    route: 'DELETE /{share}',
    query: { restype: 'share' },
    permission: 'delete',
    test: 'test/end-to-end/file-shares.test.ts',
    input: { share },
    run: deleteShare,
    reply: () => ({ status: 202 }),
  }),
];
