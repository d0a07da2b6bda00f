/** Entity Group Transaction: requests within a request, each read and permitted as if it had come alone. */
import { firstSlice, nextSlice, runSliced } from '../../../base/time-slices.ts';
import { StorageError } from '../../../services/common/errors.ts';
import type { Storage } from '../../../services/common/storage.ts';
import { type BatchChange, BatchFailure, runBatch } from '../../../services/table/batches.ts';
import type { ChangeResult } from '../../../services/table/changes.ts';
import { type ContextFor, type Operation, operationOn, type Request } from '../../operation.ts';
import { bodyTooLarge, reader } from '../../params.ts';
import { bodyLength, type Reply } from '../../reply.ts';
import type { Routable } from '../../request.ts';
import { compileRouter } from '../../router.ts';
import { jsonType, negotiateFormat } from '../content-negotiation.ts';
import { type ChangeOperation, changeOperations, queryOperations } from '../entity-operations.ts';
import { fail, formatErrorMessage, jsonError } from '../errors.ts';
import { effectiveMethod } from '../method-override.ts';
import { BODY_BYTES_MAX } from '../params.ts';
import { batchReply, type PartReply } from './batch-reply.ts';
import { type BatchPart, partRequest, readBatch } from './batch-request.ts';
import type { PartHeaders } from './multipart.ts';

const changes = new Map(changeOperations.map((one): [Operation<Storage>, ChangeOperation] => [one.row, one]));
const router = compileRouter([...queryOperations, ...changes.keys()]);
/** To read so many bytes holds the event loop long enough. */
const SLICE_BYTES = 128 * 1024;

export const batchOperation: Operation<Storage> = operationOn<Storage>()({
  name: 'Entity Group Transaction',
  route: 'POST /$batch',
  // Each part asks for its own.
  permission: 'any',
  test: 'test/end-to-end/table-batches.test.ts',
  input: {
    request: reader((request) => request),
    body: {
      kind: 'body',
      bytesMax: BODY_BYTES_MAX,
      tooLarge: () => bodyTooLarge(BODY_BYTES_MAX),
      check: () => {},
      // It is taken apart once it has its turn: until then it is little to hold.
      read: (bytes) => bytes,
    },
  },
  run: async (storage, { request, body }, contextFor) => {
    // A hundred changes take some milliseconds to be read: those that arrive together take turns.
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

/** A part whose row and rights are known. */
interface PreparedPart {
  readonly request: Routable;
  readonly row: Operation<Storage>;
  readonly storage: Storage;
  readonly input: unknown;
}

/**
 * Of parts that differ in nothing but their bodies, all else is looked at once. They share an input, which holds the body of the
 * last of them: so take from it what is wanted before the next is prepared.
 */
function createPreparer(outer: Request, contextFor: ContextFor<Storage>): (part: BatchPart) => Promise<PreparedPart> {
  let lastPart: BatchPart | undefined;
  let last: PreparedPart | undefined;
  return async (part) => {
    if (!last || part.url !== lastPart?.url || part.headers !== lastPart.headers || part.method !== lastPart.method) {
      last = prepareHead(part, outer, contextFor);
      lastPart = part;
    }
    if (last.row.body) await last.row.readBody(last.input, part.body, last.request);
    return last;
  };
}

function prepareHead(part: BatchPart, outer: Request, contextFor: ContextFor<Storage>): PreparedPart {
  const sent = partRequest(part, outer);
  const method = effectiveMethod(sent);
  const request = method === sent.method ? sent : { ...sent, method };
  const row = router.match(request);
  const storage = contextFor(row, request.container);
  return { request, row, storage, input: row.read(request) };
}

/** A query stands alone. */
async function runQuery(
  part: BatchPart,
  outer: Request,
  contextFor: ContextFor<Storage>,
  now: Now,
): Promise<PartReply> {
  try {
    const { row, request, storage, input } = await createPreparer(outer, contextFor)(part);
    if (changes.has(row)) throw fail('BatchSyntax', undefined, 'A change must be part of a change set.');
    return { requestHeaders: part.headers, reply: row.reply(await row.run(storage, input, contextFor), request) };
  } catch (error) {
    const known = asClientError(error);
    return { requestHeaders: part.headers, reply: partErrorReply(known, known.message, part.headers, outer, now) };
  }
}

/** All of them, or the one that is to blame for none. */
async function runChanges(
  parts: readonly BatchPart[],
  outer: Request,
  contextFor: ContextFor<Storage>,
  now: Now,
): Promise<PartReply[]> {
  // All that is held of the parts until they are done.
  const sent = parts.map((part) => part.headers);
  const prepared: PreparedPart[] = [];
  const batchChanges: BatchChange[] = [];
  const prepare = createPreparer(outer, contextFor);
  try {
    let bytes = 0;
    for (const part of parts) {
      const one = await prepare(part);
      const change = changes.get(one.row);
      if (!change) throw fail('BatchSyntax', undefined, 'A query must stand alone in its batch.');
      batchChanges.push(change.toChange(one.input));
      prepared.push(one);
      bytes += part.body.length + part.url.length;
      if (bytes < SLICE_BYTES) continue;
      bytes = 0;
      await nextSlice();
    }
    const [first] = prepared;
    if (!first) return [];
    const done = await runBatch(first.storage, { table: first.request.container, changes: batchChanges });
    return await buildReplies(prepared, done, sent);
  } catch (thrown) {
    const { index, error } = thrown instanceof BatchFailure ? thrown : { index: prepared.length, error: thrown };
    const known = asClientError(error);
    const message = omitsIndex(known, sent.length) ? known.message : `${index}:${known.message}`;
    return [{ requestHeaders: sent[index]!, reply: partErrorReply(known, message, sent[index]!, outer, now) }];
  }
}

/** The text of a new entity is as long as what was sent. */
async function buildReplies(
  prepared: readonly PreparedPart[],
  done: readonly ChangeResult[],
  sent: readonly PartHeaders[],
): Promise<PartReply[]> {
  const replies: PartReply[] = [];
  let bytes = 0;
  for (const [at, { row, request, input }] of prepared.entries()) {
    const reply = row.reply({ input, changed: done[at]! }, request);
    replies.push({ requestHeaders: sent[at]!, reply });
    bytes += bodyLength(reply.body);
    if (bytes < SLICE_BYTES) continue;
    bytes = 0;
    await nextSlice();
  }
  return replies;
}

/** What is no answer to one part is one to all of them. */
function asClientError(error: unknown): StorageError {
  if (error instanceof StorageError && error.status < 500) return error;
  throw error;
}

/** Of a change that is alone, these do not say which it was. */
const WITHOUT_INDEX = ['EntityAlreadyExists', 'UpdateConditionNotSatisfied', 'ResourceNotFound'];

function omitsIndex({ code }: StorageError, parts: number): boolean {
  return parts === 1 && WITHOUT_INDEX.includes(code);
}

function partErrorReply(error: StorageError, message: string, sent: PartHeaders, outer: Request, now: Now): Reply {
  const wanted = negotiateFormat(sent.accept, undefined);
  const type = jsonType(typeof wanted === 'string' ? 'minimalmetadata' : wanted.level);
  return jsonError(error, formatErrorMessage({ message }, outer.id, now()), { type });
}
