/**
 * Entity Group Transaction: a batch of changes to one partition of a table, or of one query. Each part is routed, authorized and read as if it
 * had come alone.
 */
import { firstSlice, nextSlice, runSliced } from '../../../base/time-slices.ts';
import { StorageError } from '../../../services/common/errors.ts';
import type { Storage } from '../../../services/common/storage.ts';
import { type Change, type ChangeResult, changeEntities, GroupFailure } from '../../../services/table/entities.ts';
import { type BatchPart, batchBody, type PartHeaders } from '../../multipart.ts';
import { type ContextFor, type Operation, operationOn, type Request, type RunPart } from '../../operation.ts';
import { reader } from '../../params.ts';
import { bodyLength, type Reply } from '../../reply.ts';
import { compileRouter } from '../../router.ts';
import { type ChangeOperation, changeOperations, queryOperations } from '../entity-operations.ts';
import { fail, formatErrorMessage, jsonError } from '../errors.ts';
import { effectiveMethod } from '../params.ts';
import { jsonType, negotiateFormat } from '../replies.ts';
import { batchReply, type PartReply, partRequest, readBatch } from './batch-format.ts';

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
    body: batchBody,
  },
  run: async (storage, { request, body }, contextFor, runPart) => {
    // To read a hundred changes takes some milliseconds, so batches that arrive together take turns.
    await firstSlice();
    const batch = await runSliced(readBatch(body, request.headers['content-type']), 0);
    const now = () => storage.partition.clock.now();
    // Not awaited: see runChanges.
    return batch.kind === 'changes'
      ? runChanges(batch.parts, request, contextFor, now)
      : runQuery(batch.part, request, contextFor, runPart, now);
  },
  reply: ({ isChangeSet, parts }) => batchReply(parts, isChangeSet),
});

type Now = () => bigint;

interface BatchResult {
  readonly isChangeSet: boolean;
  readonly parts: readonly PartReply[];
}

async function runQuery(
  part: BatchPart,
  outer: Request,
  contextFor: ContextFor<Storage>,
  runPart: RunPart<Storage>,
  now: Now,
): Promise<BatchResult> {
  const { headers } = part;
  const resultOf = (reply: Reply) => ({ isChangeSet: false, parts: [{ requestHeaders: headers, reply }] });
  try {
    const { row, request, storage, input } = readQuery(part, outer, contextFor);
    return resultOf(row.reply(await row.run(storage, input, contextFor, runPart), request));
  } catch (error) {
    const known = asClientError(error);
    return resultOf(partErrorReply(known, known.message, headers, outer, now));
  }
}

/**
 * The replies to all changes, or the one reply to the change that failed. Only the headers are held until the commit. So this function is not
 * async: one that is suspended holds its arguments, and each garbage collection would copy all parts and changes.
 */
function runChanges(
  parts: readonly BatchPart[],
  outer: Request,
  contextFor: ContextFor<Storage>,
  now: Now,
): Promise<BatchResult> {
  const requestHeaders = parts.map((part) => part.headers);
  const heads: ChangeHead[] = [];
  return readAndChange(parts, createHeadReader(outer, contextFor), heads)
    .then((results) => buildReplies(heads, results, requestHeaders))
    .catch((thrown: unknown) => {
      const { index, error } = thrown instanceof GroupFailure ? thrown : { index: heads.length, error: thrown };
      const known = asClientError(error);
      const headers = requestHeaders[index]!;
      const message = omitsIndex(known, requestHeaders.length) ? known.message : `${index}:${known.message}`;
      return [{ requestHeaders: headers, reply: partErrorReply(known, message, headers, outer, now) }];
    })
    .then((replies) => ({ isChangeSet: true, parts: replies }));
}

async function readAndChange(
  parts: readonly BatchPart[],
  readHead: (part: BatchPart) => ChangeHead,
  heads: ChangeHead[],
): Promise<readonly ChangeResult[]> {
  const changes = await readChanges(parts, readHead, heads);
  const [first] = heads;
  return first ? changeEntities(first.storage, first.table, changes) : [];
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

const changesByRow = new Map(changeOperations.map((one): [Operation<Storage>, ChangeOperation] => [one.row, one]));
const router = compileRouter([...queryOperations, ...changesByRow.keys()]);

/** All of a part but its body. */
interface PartHead {
  readonly request: Request;
  readonly row: Operation<Storage>;
  readonly storage: Storage;
  readonly input: unknown;
}

export interface ChangeHead extends Pick<PartHead, 'storage' | 'input'> {
  readonly operation: ChangeOperation;
  readonly table: string;
}

function readHead(part: BatchPart, outer: Request, contextFor: ContextFor<Storage>): PartHead {
  const sent = partRequest(part, outer);
  const method = effectiveMethod(sent);
  const request = method === sent.method ? sent : { ...sent, method };
  const row = router.match(request);
  const storage = contextFor(row, request.container);
  return { request, row, storage, input: row.read(request) };
}

export function readQuery(part: BatchPart, outer: Request, contextFor: ContextFor<Storage>): PartHead {
  const head = readHead(part, outer, contextFor);
  if (changesByRow.has(head.row)) throw fail('BatchSyntax', undefined, 'A change must be part of a change set.');
  return head;
}

/** Parts that differ in nothing but their bodies share one head: most change sets are of such parts. */
export function createHeadReader(outer: Request, contextFor: ContextFor<Storage>): (part: BatchPart) => ChangeHead {
  let lastPart: BatchPart | undefined;
  let lastHead: ChangeHead | undefined;
  return (part) => {
    if (lastHead && lastPart && hasSameHead(part, lastPart)) return lastHead;
    const head = readHead(part, outer, contextFor);
    const operation = changesByRow.get(head.row);
    if (!operation) throw fail('BatchSyntax', undefined, 'A query must stand alone in its batch.');
    lastPart = part;
    lastHead = { operation, storage: head.storage, table: head.request.container, input: head.input };
    return lastHead;
  };
}

function hasSameHead(one: BatchPart, other: BatchPart): boolean {
  return one.url === other.url && one.headers === other.headers && one.method === other.method;
}
