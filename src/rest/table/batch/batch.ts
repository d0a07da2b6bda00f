/** Entity Group Transaction: requests within a request, each read and permitted as if it had come alone. */
import { firstSlice, inTurns, nextSlice } from '../../../base/time-slices.ts';
import { StorageError } from '../../../services/common/errors.ts';
import type { Storage } from '../../../services/common/storage.ts';
import { type BatchChange, BatchFailure, runBatch } from '../../../services/table/batches.ts';
import type { Changed } from '../../../services/table/changes.ts';
import { type HandFor, type Operation, operationOn, type Request } from '../../operation.ts';
import { bodyTooLarge, reader } from '../../params.ts';
import { lengthOf, type Reply } from '../../reply.ts';
import type { Routable } from '../../request.ts';
import { routerOf } from '../../router.ts';
import { type ChangeOperation, changeOperations, queryOperations } from '../entity-operations.ts';
import { fail, jsonError, messageOf } from '../errors.ts';
import { jsonType, wantedOf } from '../formats.ts';
import { methodOf } from '../method.ts';
import { BODY_BYTES_MAX } from '../params.ts';
import { batchReply, type PartReply } from './batch-reply.ts';
import { type Part, partRequest, readBatch } from './batch-request.ts';
import type { Headers } from './multipart.ts';

const changes = new Map(changeOperations.map((one): [Operation<Storage>, ChangeOperation] => [one.row, one]));
const router = routerOf([...queryOperations, ...changes.keys()]);
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
  run: async (storage, { request, body }, handFor) => {
    // A hundred changes take some milliseconds to be read: those that arrive together take turns.
    await firstSlice();
    const batch = await inTurns(readBatch(body, request.headers['content-type']), 0);
    const now = () => storage.partition.clock.now();
    const isSet = batch.kind === 'changes';
    const parts = isSet
      ? await runChanges(batch.parts, request, handFor, now)
      : [await runQuery(batch.part, request, handFor, now)];
    return { isSet, parts };
  },
  reply: ({ isSet, parts }) => batchReply(parts, isSet),
});

type Now = () => bigint;

/** A part whose row and rights are known. */
interface Prepared {
  readonly request: Routable;
  readonly row: Operation<Storage>;
  readonly storage: Storage;
  readonly input: unknown;
}

/**
 * Of parts that differ in nothing but their bodies, all else is looked at once. They share an input, which holds the body of the
 * last of them: so take from it what is wanted before the next is prepared.
 */
function preparing(outer: Request, handFor: HandFor<Storage>): (part: Part) => Promise<Prepared> {
  let like: Part | undefined;
  let last: Prepared | undefined;
  return async (part) => {
    if (!last || part.url !== like?.url || part.headers !== like.headers || part.method !== like.method) {
      last = prepareHead(part, outer, handFor);
      like = part;
    }
    if (last.row.body) await last.row.readBody(last.input, part.body, last.request);
    return last;
  };
}

function prepareHead(part: Part, outer: Request, handFor: HandFor<Storage>): Prepared {
  const sent = partRequest(part, outer);
  const method = methodOf(sent);
  const request = method === sent.method ? sent : { ...sent, method };
  const row = router.match(request);
  const storage = handFor(row, request.container);
  return { request, row, storage, input: row.read(request) };
}

/** A query stands alone. */
async function runQuery(part: Part, outer: Request, handFor: HandFor<Storage>, now: Now): Promise<PartReply> {
  try {
    const { row, request, storage, input } = await preparing(outer, handFor)(part);
    if (changes.has(row)) throw fail('BatchSyntax', undefined, 'A change must be part of a change set.');
    return { sent: part.headers, reply: row.reply(await row.run(storage, input, handFor), request) };
  } catch (error) {
    const known = refusalOf(error);
    return { sent: part.headers, reply: errorOf(known, known.message, part.headers, outer, now) };
  }
}

/** All of them, or the one that is to blame for none. */
async function runChanges(
  parts: readonly Part[],
  outer: Request,
  handFor: HandFor<Storage>,
  now: Now,
): Promise<PartReply[]> {
  // All that is held of the parts until they are done.
  const sent = parts.map((part) => part.headers);
  const prepared: Prepared[] = [];
  const wanted: BatchChange[] = [];
  const prepare = preparing(outer, handFor);
  try {
    let bytes = 0;
    for (const part of parts) {
      const one = await prepare(part);
      const change = changes.get(one.row);
      if (!change) throw fail('BatchSyntax', undefined, 'A query must stand alone in its batch.');
      wanted.push(change.changeOf(one.input));
      prepared.push(one);
      bytes += part.body.length + part.url.length;
      if (bytes < SLICE_BYTES) continue;
      bytes = 0;
      await nextSlice();
    }
    const [first] = prepared;
    if (!first) return [];
    const done = await runBatch(first.storage, { table: first.request.container, changes: wanted });
    return await repliesTo(prepared, done, sent);
  } catch (thrown) {
    const { index, error } = thrown instanceof BatchFailure ? thrown : { index: prepared.length, error: thrown };
    const known = refusalOf(error);
    const message = isBare(known, sent.length) ? known.message : `${index}:${known.message}`;
    return [{ sent: sent[index]!, reply: errorOf(known, message, sent[index]!, outer, now) }];
  }
}

/** The text of a new entity is as long as what was sent. */
async function repliesTo(
  prepared: readonly Prepared[],
  done: readonly Changed[],
  sent: readonly Headers[],
): Promise<PartReply[]> {
  const replies: PartReply[] = [];
  let bytes = 0;
  for (const [at, { row, request, input }] of prepared.entries()) {
    const reply = row.reply({ input, changed: done[at]! }, request);
    replies.push({ sent: sent[at]!, reply });
    bytes += lengthOf(reply.body);
    if (bytes < SLICE_BYTES) continue;
    bytes = 0;
    await nextSlice();
  }
  return replies;
}

/** What is no answer to one part is one to all of them. */
function refusalOf(error: unknown): StorageError {
  if (error instanceof StorageError && error.status < 500) return error;
  throw error;
}

/** Of a change that is alone, these do not say which it was. */
const BARE = ['EntityAlreadyExists', 'UpdateConditionNotSatisfied', 'ResourceNotFound'];

function isBare({ code }: StorageError, parts: number): boolean {
  return parts === 1 && BARE.includes(code);
}

function errorOf(error: StorageError, message: string, sent: Headers, outer: Request, now: Now): Reply {
  const wanted = wantedOf(sent.accept, undefined);
  const type = jsonType(typeof wanted === 'string' ? 'minimalmetadata' : wanted.level);
  return jsonError(error, messageOf({ message }, outer.id, now()), { type });
}
