/**
 * Blob Batch: at most 256 requests in one body. Each part is routed, authenticated, authorized and judged by itself, and has its own
 * reply. Parts run side by side, so that they share commits.
 */
import { firstSlice, isSmall, limitPerTick, runSliced } from '../../base/time-slices.ts';
import { asStorageError, commonErrors, errorFactory, StorageError } from '../../services/common/errors.ts';
import type { Storage } from '../../services/common/storage.ts';
import { batchBody, parseBoundary } from '../multipart.ts';
import { type Operation, operationOn, type Reader, type RunPart } from '../operation.ts';
import { invalidHeader, reader } from '../params.ts';
import { errorReply, PAGE_BYTES } from '../reply.ts';
import { compileRouter } from '../router.ts';
import { batchReply, type FormattedPart, formatPart } from './batch-reply.ts';
import { type BatchRequest, readBlobBatch } from './batch-request.ts';

const fail = errorFactory(commonErrors);
const operation = operationOn<Storage>();

const PART_OPERATIONS = ['Delete Blob', 'Set Blob Tier'];
/** Clients disagree about restype: that for JavaScript sends it to the account, too, where the account is in the path. */
const ROUTES = (['POST /', 'POST /{container}'] as const).flatMap((route) => [
  { route, query: { comp: 'batch' } },
  { route, query: { comp: 'batch', restype: 'container' } },
]);

/** `table`: the operations of the service, of which some can be parts. */
export function batchOperations(table: readonly Operation<Storage>[]): readonly Operation<Storage>[] {
  const router = compileRouter(table.filter(({ name }) => PART_OPERATIONS.includes(name)));
  return ROUTES.map(({ route, query }) =>
    operation({
      name: 'Blob Batch',
      route,
      query,
      // Any valid credential: each part needs one of its own that permits it.
      permission: 'any',
      test: 'test/end-to-end/blob-batch.test.ts',
      input: { boundary, request: reader((request) => request), body: batchBody },
      replyBytes: () => PAGE_BYTES,
      run: async (storage, { boundary, request, body }, _, runPart) => {
        const now = () => storage.partition.clock.now();
        try {
          const parts = await runSliced(readBlobBatch(body, boundary, request, router), body.length);
          return await Promise.all(parts.map((part) => replyToPart(part, runPart, now)));
        } catch (error) {
          // Azure accepts the batch, and sends one part with the error in the place of all replies.
          if (error instanceof StorageError)
            return [formatPart(request, errorReply(error, request.id, now(), request), undefined)];
          throw error;
        }
      },
      reply: batchReply,
    }),
  );
}

const boundary: Reader<string> = reader(({ headers }) => {
  const type = headers['content-type'];
  if (type === undefined) throw fail('MissingRequiredHeader', { HeaderName: 'Content-Type' });
  const found = parseBoundary(String(type));
  if (found === undefined) throw invalidHeader('Content-Type', String(type));
  return found;
});

/** Of all batches together. To verify a signature takes time by the length of what is signed. */
const smallPartTurn = limitPerTick(16);

async function replyToPart(part: BatchRequest, runPart: RunPart<Storage>, now: () => bigint): Promise<FormattedPart> {
  const { contentId, headBytes, row, request } = part;
  await (isSmall(headBytes) ? smallPartTurn() : firstSlice());
  try {
    return formatPart(request, await runPart(row, request), contentId);
  } catch (error) {
    const known = asStorageError(error);
    if (!known) throw error;
    return formatPart(request, errorReply(known, request.id, now(), request), contentId);
  }
}
