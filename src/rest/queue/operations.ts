/** Operations of the Queue service: one row each, in the order of Microsoft's REST reference. */
import { formatRfc1123 } from '../../base/time.ts';
import type { Storage } from '../../services/common/storage.ts';
import { listQueues } from '../../services/queue/listing.ts';
import {
  clearMessages,
  deleteMessage,
  getMessages,
  peekMessages,
  putMessage,
  updateMessage,
} from '../../services/queue/messages.ts';
import {
  createQueue,
  deleteQueue,
  getQueueAcl,
  getQueueMetadata,
  setQueueAcl,
  setQueueMetadata,
} from '../../services/queue/queues.ts';
import { prepend, streamAsProduced } from '../http/streamed.ts';
import { notImplementedOperation, type Operation, operationOn } from '../operation.ts';
import { integerQuery, listQuery, metadata, pathPart, query, xmlBody } from '../params.ts';
import { estimateListBytes, estimateMessagesBytes, metadataHeaders, streamedXmlReply, xmlReply } from '../reply.ts';
import { accountUrl } from '../request.ts';
import { serviceOperations } from '../service-operations.ts';
import { parsePolicies, policiesXml } from '../xml/access-policies.ts';
import {
  createQueueListWriter,
  dequeuedMessagesXml,
  peekedMessagesXml,
  putMessageXml,
  queueListStart,
} from './list-xml.ts';
import { messageText, newMessageText } from './message-body.ts';
import {
  dequeueSeconds,
  isVersionBefore,
  messageCount,
  rejectPeekOnly,
  rejectPopReceipt,
  required,
  ttlSeconds,
  visibilitySeconds,
} from './params.ts';

const operation = operationOn<Storage>();
const queue = pathPart(0);
const messageId = pathPart(1);
const popReceipt = required('popreceipt', query('popreceipt'));

const SHAPES = ['/', '/{queue}', '/{queue}/messages', '/{queue}/messages/{message}'] as const;
/** Before this version Put Message had no response body. */
const RECEIPT_SINCE = '2016-05-31';
const DEFAULT_VISIBILITY_SECONDS = 30;

const operations: readonly Operation<Storage>[] = [
  operation({
    name: 'List Queues',
    route: 'GET /',
    query: { comp: 'list' },
    permission: 'list',
    test: 'test/end-to-end/queue-list.test.ts',
    input: {
      prefix: query('prefix'),
      marker: query('marker'),
      resultsMax: integerQuery('maxresults', { min: 1, max: 2 ** 31 - 1 }),
      include: listQuery('include', ['metadata']),
    },
    replyBytes: estimateListBytes,
    run: async (storage, input) => {
      const list = createQueueListWriter(input.include.includes('metadata'));
      const pieces = await streamAsProduced(async (append) => {
        append(list.end(await listQueues(storage, input, (queues) => append(list.queues(queues)))));
      });
      return { input, pieces };
    },
    reply: ({ input, pieces }, request) =>
      streamedXmlReply(200, prepend(queueListStart(accountUrl(request), input), pieces)),
  }),
  ...serviceOperations('queue', SHAPES),
  notImplementedOperation('Get User Delegation Key', 'POST /', { restype: 'service', comp: 'userdelegationkey' }),

  operation({
    name: 'Create Queue',
    route: 'PUT /{queue}',
    permission: ['create', 'write'],
    test: 'test/end-to-end/queue-queues.test.ts',
    input: { queue, metadata },
    run: createQueue,
    reply: (made) => ({ status: made === 'created' ? 201 : 204 }),
  }),
  operation({
    name: 'Delete Queue',
    route: 'DELETE /{queue}',
    permission: 'delete',
    test: 'test/end-to-end/queue-queues.test.ts',
    input: { queue },
    run: deleteQueue,
    reply: () => ({ status: 204 }),
  }),
  operation({
    name: 'Get Queue Metadata',
    route: 'GET|HEAD /{queue}',
    query: { comp: 'metadata' },
    permission: 'read',
    test: 'test/end-to-end/queue-queues.test.ts',
    input: { queue },
    run: getQueueMetadata,
    reply: ({ metadata: stored, approximateMessages }) => ({
      status: 200,
      headers: { ...metadataHeaders(stored), 'x-ms-approximate-messages-count': approximateMessages },
    }),
  }),
  operation({
    name: 'Set Queue Metadata',
    route: 'PUT /{queue}',
    query: { comp: 'metadata' },
    permission: 'write',
    test: 'test/end-to-end/queue-queues.test.ts',
    input: { queue, metadata },
    run: setQueueMetadata,
    reply: () => ({ status: 204 }),
  }),
  operation({
    name: 'Get Queue ACL',
    route: 'GET|HEAD /{queue}',
    query: { comp: 'acl' },
    permission: 'owner',
    test: 'test/end-to-end/queue-acl.test.ts',
    input: { queue },
    run: getQueueAcl,
    reply: (policies) => xmlReply(200, policiesXml(policies)),
  }),
  operation({
    name: 'Set Queue ACL',
    route: 'PUT /{queue}',
    query: { comp: 'acl' },
    permission: 'owner',
    test: 'test/end-to-end/queue-acl.test.ts',
    input: { queue, document: xmlBody('SignedIdentifiers') },
    run: (storage, { queue: name, document }) =>
      setQueueAcl(storage, { queue: name, policies: parsePolicies(document, 'queue') }),
    reply: () => ({ status: 204 }),
  }),

  operation({
    name: 'Put Message',
    route: 'POST /{queue}/messages',
    permission: 'add',
    test: 'test/end-to-end/queue-messages.test.ts',
    input: { queue, visibilitySeconds, ttlSeconds, text: newMessageText },
    run: putMessage,
    reply: (message, request) =>
      isVersionBefore(request, RECEIPT_SINCE) ? { status: 201 } : xmlReply(201, putMessageXml(message)),
  }),
  operation({
    name: 'Get Messages',
    route: 'GET /{queue}/messages',
    permission: 'process',
    test: 'test/end-to-end/queue-messages.test.ts',
    input: { queue, messageCount, dequeueSeconds, rejectPeekOnly },
    replyBytes: estimateMessagesBytes,
    run: async (
      storage,
      { queue: name, messageCount: count = 1, dequeueSeconds: seconds = DEFAULT_VISIBILITY_SECONDS },
    ) => dequeuedMessagesXml(await getMessages(storage, { queue: name, count, visibilitySeconds: seconds })),
    reply: (pieces) => streamedXmlReply(200, pieces),
  }),
  operation({
    name: 'Peek Messages',
    route: 'GET /{queue}/messages',
    query: { peekonly: 'true' },
    permission: 'read',
    test: 'test/end-to-end/queue-messages.test.ts',
    input: { queue, messageCount },
    replyBytes: estimateMessagesBytes,
    run: async (storage, { queue: name, messageCount: count = 1 }) =>
      peekedMessagesXml(await peekMessages(storage, { queue: name, count })),
    reply: (pieces) => streamedXmlReply(200, pieces),
  }),
  operation({
    name: 'Clear Messages',
    route: 'DELETE /{queue}/messages',
    permission: 'delete',
    test: 'test/end-to-end/queue-messages.test.ts',
    // With a receipt, the client meant one message, whose id is missing.
    input: { queue, rejectPopReceipt },
    run: clearMessages,
    reply: () => ({ status: 204 }),
  }),
  operation({
    name: 'Delete Message',
    route: 'DELETE /{queue}/messages/{message}',
    permission: 'process',
    test: 'test/end-to-end/queue-receipts.test.ts',
    input: { queue, messageId, popReceipt },
    run: deleteMessage,
    reply: () => ({ status: 204 }),
  }),
  operation({
    name: 'Update Message',
    route: 'PUT /{queue}/messages/{message}',
    permission: 'update',
    test: 'test/end-to-end/queue-receipts.test.ts',
    input: {
      queue,
      messageId,
      popReceipt,
      visibilitySeconds: required('visibilitytimeout', visibilitySeconds),
      text: messageText,
    },
    run: updateMessage,
    reply: ({ popReceipt: renewed, nextVisible }) => ({
      status: 204,
      headers: { 'x-ms-popreceipt': renewed, 'x-ms-time-next-visible': formatRfc1123(nextVisible) },
    }),
  }),
];

export const queueOperations: readonly Operation<Storage>[] = operations.map(uncached);

/** Queues change with every request: no response of a read may be cached. */
function uncached(row: Operation<Storage>): Operation<Storage> {
  if (!row.methods.includes('GET')) return row;
  return {
    ...row,
    reply(output, request) {
      const reply = row.reply(output, request);
      return { ...reply, headers: { 'Cache-Control': 'no-cache', ...reply.headers } };
    },
  };
}
