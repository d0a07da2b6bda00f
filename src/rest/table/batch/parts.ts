/** Parts of a batch → changes or one query: a part is routed, authorized and read as if it had come alone. */
import type { Storage } from '../../../services/common/storage.ts';
import type { ContextFor, Operation, Request } from '../../operation.ts';
import { compileRouter } from '../../router.ts';
import { type ChangeOperation, changeOperations, queryOperations } from '../entity-operations.ts';
import { fail } from '../errors.ts';
import { effectiveMethod } from '../method-override.ts';
import { type BatchPart, partRequest } from './batch-request.ts';

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
