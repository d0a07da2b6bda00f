/** Entity Group Transaction: requests within a request, each read and permitted as if it had come alone. */
import { StorageError } from '../../services/errors.ts';
import { othersFirst, type Storage } from '../../services/storage.ts';
import { type BatchChange, BatchFailure, runBatch } from '../../services/table/batches.ts';
import { type HandFor, type Operation, operationOn, type Request } from '../operation.ts';
import { bodyTooLarge, reader } from '../params.ts';
import type { Reply } from '../reply.ts';
import type { Routable } from '../request.ts';
import { routerOf } from '../router.ts';
import { batchReply, type PartReply } from './batch-reply.ts';
import { type Batch, type Part, partRequest, readBatch } from './batch-request.ts';
import { type ChangeOperation, changeOperations, queryOperations } from './entity-operations.ts';
import { fail, jsonError, messageOf } from './errors.ts';
import { jsonType, wantedOf } from './formats.ts';
import { methodOf } from './method.ts';
import { BODY_BYTES_MAX } from './params.ts';

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
    batch: {
      kind: 'body',
      bytesMax: BODY_BYTES_MAX,
      tooLarge: () => bodyTooLarge(BODY_BYTES_MAX),
      check: () => {},
      read: (bytes, request): Batch => readBatch(bytes, request.headers['content-type']),
    },
  },
  run: async (storage, { request, batch }, handFor) => {
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

function prepare(part: Part, outer: Request, handFor: HandFor<Storage>): Prepared {
  const sent = partRequest(part, outer);
  const request = { ...sent, method: methodOf(sent) };
  const row = router.match(request);
  const storage = handFor(row, request.container);
  const input = row.read(request);
  if (row.body) row.readBody(input, part.body, request);
  return { request, row, storage, input };
}

/** A query stands alone. */
async function runQuery(part: Part, outer: Request, handFor: HandFor<Storage>, now: Now): Promise<PartReply> {
  try {
    const { row, request, storage, input } = prepare(part, outer, handFor);
    if (changes.has(row)) throw fail('BatchSyntax', undefined, 'A change must be part of a change set.');
    return { part, reply: row.reply(await row.run(storage, input, handFor), request) };
  } catch (error) {
    const known = refusalOf(error);
    return { part, reply: errorOf(known, known.message, part, outer, now) };
  }
}

/** All of them, or the one that is to blame for none. */
async function runChanges(
  parts: readonly Part[],
  outer: Request,
  handFor: HandFor<Storage>,
  now: Now,
): Promise<PartReply[]> {
  const prepared: Prepared[] = [];
  const wanted: BatchChange[] = [];
  try {
    let bytes = 0;
    for (const part of parts) {
      const one = prepare(part, outer, handFor);
      const change = changes.get(one.row);
      if (!change) throw fail('BatchSyntax', undefined, 'A query must stand alone in its batch.');
      wanted.push({ ...change.changeOf(one.input), table: one.request.container });
      prepared.push(one);
      bytes += part.body.length;
      if (bytes < SLICE_BYTES) continue;
      bytes = 0;
      await othersFirst();
    }
    const [first] = prepared;
    if (!first) return [];
    const done = await runBatch(first.storage, { table: first.request.container, changes: wanted });
    return prepared.map(({ row, request, input }, at) => ({
      part: parts[at]!,
      reply: row.reply({ input, changed: done[at]! }, request),
    }));
  } catch (thrown) {
    const { index, error } = thrown instanceof BatchFailure ? thrown : { index: prepared.length, error: thrown };
    const known = refusalOf(error);
    const message = isBare(known, parts) ? known.message : `${index}:${known.message}`;
    return [{ part: parts[index]!, reply: errorOf(known, message, parts[index]!, outer, now) }];
  }
}

/** What is no answer to one part is one to all of them. */
function refusalOf(error: unknown): StorageError {
  if (error instanceof StorageError && error.status < 500) return error;
  throw error;
}

/** Of a change that is alone, these do not say which it was. */
const BARE = ['EntityAlreadyExists', 'UpdateConditionNotSatisfied', 'ResourceNotFound'];

function isBare({ code }: StorageError, parts: readonly Part[]): boolean {
  return parts.length === 1 && BARE.includes(code);
}

function errorOf(error: StorageError, message: string, { headers }: Part, outer: Request, now: Now): Reply {
  const wanted = wantedOf(headers.accept, undefined);
  const type = jsonType(typeof wanted === 'string' ? 'minimalmetadata' : wanted.level);
  return jsonError(error, messageOf({ message }, outer.id, now()), { type });
}
