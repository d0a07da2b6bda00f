/** Entity Group Transaction: a batch of changes to one partition of a table, or of one query. */
import { firstSlice, nextSlice, runSliced } from '../../../base/time-slices.ts';
import { StorageError } from '../../../services/common/errors.ts';
import type { Storage } from '../../../services/common/storage.ts';
import type { Change, ChangeResult } from '../../../services/table/changes.ts';
import { changeEntities, GroupFailure } from '../../../services/table/entities.ts';
import { type ContextFor, type Operation, operationOn, type Request } from '../../operation.ts';
import { bodyTooLarge, reader } from '../../params.ts';
import { bodyLength, type Reply } from '../../reply.ts';
import { jsonType, negotiateFormat } from '../content-negotiation.ts';
import { formatErrorMessage, jsonError } from '../errors.ts';
import { BODY_BYTES_MAX } from '../params.ts';
import { batchReply, type PartReply } from './batch-reply.ts';
import { type BatchPart, readBatch } from './batch-request.ts';
import type { PartHeaders } from './multipart.ts';
import { type ChangeHead, createHeadReader, readQuery } from './parts.ts';

/** After reading or writing this many bytes of parts the event loop gets its turn. */
const SLICE_BYTES = 128 * 1024;

export const batchOperation: Operation<Storage> = operationOn<Storage>()({
  name: 'Entity Group Transaction',
  route: 'POST /$batch',
  // Each part is authorized for itself.
  permission: 'any',
  test: 'test/end-to-end/table-batches.test.ts',
  input: {
    request: reader((request) => request),
    body: {
      kind: 'body',
      bytesMax: BODY_BYTES_MAX,
      tooLarge: () => bodyTooLarge(BODY_BYTES_MAX),
      check: () => {},
      // It is parsed in `run`, when it has its turn: until then only the bytes are held.
      read: (bytes) => bytes,
    },
  },
  run: async (storage, { request, body }, contextFor) => {
    // To read a hundred changes takes some milliseconds, so batches that arrive together take turns.
    await firstSlice();
    const batch = await runSliced(readBatch(body, request.headers['content-type']), 0);
    const now = () => storage.partition.clock.now();
    const isChangeSet = batch.kind === 'changes';
    const parts = isChangeSet
      ? await runChanges(batch.parts, request, contextFor, now)
      : [await runQuery(batch.part, request, contextFor, now)];
    return { isChangeSet, parts };
  },
  reply: ({ isChangeSet, parts }) => batchReply(parts, isChangeSet),
});

type Now = () => bigint;

async function runQuery(
  part: BatchPart,
  outer: Request,
  contextFor: ContextFor<Storage>,
  now: Now,
): Promise<PartReply> {
  const { headers } = part;
  try {
    const { row, request, storage, input } = readQuery(part, outer, contextFor);
    return { requestHeaders: headers, reply: row.reply(await row.run(storage, input, contextFor), request) };
  } catch (error) {
    const known = asClientError(error);
    return { requestHeaders: headers, reply: partErrorReply(known, known.message, headers, outer, now) };
  }
}

/** The replies to all changes, or the one reply to the change that failed. */
async function runChanges(
  parts: readonly BatchPart[],
  outer: Request,
  contextFor: ContextFor<Storage>,
  now: Now,
): Promise<PartReply[]> {
  // Only the headers are held until the commit: the bodies can be released.
  const requestHeaders = parts.map((part) => part.headers);
  const heads: ChangeHead[] = [];
  try {
    const changes = await readChanges(parts, createHeadReader(outer, contextFor), heads);
    const [first] = heads;
    if (!first) return [];
    const results = await changeEntities(first.storage, first.table, changes);
    return await buildReplies(heads, results, requestHeaders);
  } catch (thrown) {
    const { index, error } = thrown instanceof GroupFailure ? thrown : { index: heads.length, error: thrown };
    const known = asClientError(error);
    const headers = requestHeaders[index]!;
    const message = omitsIndex(known, requestHeaders.length) ? known.message : `${index}:${known.message}`;
    return [{ requestHeaders: headers, reply: partErrorReply(known, message, headers, outer, now) }];
  }
}

/** `heads` gets the head of each change that was read: if one cannot be read, their number is its index. */
async function readChanges(
  parts: readonly BatchPart[],
  readHead: (part: BatchPart) => ChangeHead,
  heads: ChangeHead[],
): Promise<Change[]> {
  const changes: Change[] = [];
  let bytes = 0;
  for (const part of parts) {
    const head = readHead(part);
    const change = head.operation.readChange(head.input, part.body);
    // A small body is read at once: a hundred promises would cost as much as the bodies.
    changes.push(change instanceof Promise ? await change : change);
    heads.push(head);
    bytes += part.body.length + part.url.length;
    if (bytes < SLICE_BYTES) continue;
    bytes = 0;
    await nextSlice();
  }
  return changes;
}

/** In slices: the text of an inserted entity is as long as its request. */
async function buildReplies(
  heads: readonly ChangeHead[],
  results: readonly ChangeResult[],
  requestHeaders: readonly PartHeaders[],
): Promise<PartReply[]> {
  const replies: PartReply[] = [];
  let bytes = 0;
  for (const { operation, input } of heads) {
    const at = replies.length;
    const reply = operation.formatReply(results[at]!, input);
    replies.push({ requestHeaders: requestHeaders[at]!, reply });
    bytes += bodyLength(reply.body);
    if (bytes < SLICE_BYTES) continue;
    bytes = 0;
    await nextSlice();
  }
  return replies;
}

/** An error of the server is no reply to a part: it is thrown, and becomes the reply to the whole batch. */
function asClientError(error: unknown): StorageError {
  if (error instanceof StorageError && error.status < 500) return error;
  throw error;
}

/** The errors that Azure writes without an index, where the change set has one change. */
const WITHOUT_INDEX = ['EntityAlreadyExists', 'UpdateConditionNotSatisfied', 'ResourceNotFound'];

function omitsIndex({ code }: StorageError, parts: number): boolean {
  return parts === 1 && WITHOUT_INDEX.includes(code);
}

function partErrorReply(error: StorageError, message: string, sent: PartHeaders, outer: Request, now: Now): Reply {
  const wanted = negotiateFormat(sent.accept, undefined);
  const type = jsonType(typeof wanted === 'string' ? 'minimalmetadata' : wanted.level);
  return jsonError(error, formatErrorMessage({ message }, outer.id, now()), { type });
}
