/** Queues as rows; docs/adr/0002-row-schema.md has the schema. Their messages are in message-rows.ts. */
import { deletionKey } from '../../content/rows.ts';
import { encodeKey, type Key, keysUnder, type Range } from '../../partition/keys.ts';
import type { Row, Snapshot, Timestamp, Transaction } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import { deletionOfRows, encodeDeletion } from '../common/deletions.ts';
import type { Metadata } from '../common/metadata.ts';
import * as names from '../common/names.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { countersIn } from './message-counts.ts';

export type QueueId = bigint;

/** What a name leads to. Messages belong to a generation: Clear Messages begins a new one. */
export interface Queue {
  readonly account: AccountId;
  readonly id: QueueId;
  readonly gen: bigint;
}

export interface QueueProperties {
  readonly metadata: Metadata;
  readonly policies: readonly AccessPolicy[];
}

export const nameKey = (account: AccountId, queue: string): Key => names.nameKey(account, 'queue', queue);
export const nameKeyPrefix = (account: AccountId, prefix: string): Key => names.nameKeyPrefix(account, 'queue', prefix);
export const propertiesKey = (account: AccountId, id: QueueId): Key => names.propertiesKey(account, 'queue', id);
/** Where the requests for one queue take turns, before its id is known. */
export const txQueueKey = (account: AccountId, ...path: string[]): Key => encodeKey([account, 'queue', ...path]);
export const messagesIn = ({ account, id, gen }: Queue): Range => keysUnder([account, 'q', id, gen]);

export const encodeQueue = (id: QueueId, gen: bigint): Buffer => {
  const more = Buffer.alloc(8);
  more.writeBigUInt64BE(gen);
  return names.encodeName(id, more);
};
export const decodeQueue = (account: AccountId, row: Pick<Row, 'value'>): Queue => ({
  account,
  id: names.decodeName(row),
  gen: names.bytesAfterId(row).readBigUInt64BE(),
});
export const encodeProperties = ({ metadata, policies }: QueueProperties): Buffer =>
  encodeValue({ metadata, policies });
export const decodeProperties = (row: Row): QueueProperties => decodeValue<QueueProperties>(row);

/** Whose queue, and for whom. */
export type QueueScope = Pick<Storage, 'account' | 'granted'>;

export async function readQueue(at: Snapshot, scope: QueueScope, queue: string): Promise<Queue> {
  return checkQueueAccess(scope, await at.get(nameKey(scope.account, queue)));
}

export function checkQueueAccess({ account, granted }: QueueScope, name: Row | undefined): Queue {
  if (!name) throw fail('QueueNotFound');
  const found = decodeQueue(account, name);
  if (granted?.container !== undefined && granted.container !== found.id) throw fail('QueueNotFound');
  return found;
}

export async function readProperties(at: Snapshot, { account, id }: Queue): Promise<QueueProperties> {
  return decodeProperties((await at.get(propertiesKey(account, id)))!);
}

/** Every generation; no name leads to them any more. */
export function scheduleQueueDeletion(tx: Transaction, account: AccountId, id: QueueId): void {
  const beginnings = [encodeKey([account, 'q', id]), encodeKey([account, '#', id])];
  scheduleDeletion(tx, account, id, beginnings);
}

/** Whoever adds to a generation checks the name, which has another one now. */
export function scheduleGenerationDeletion(tx: Transaction, queue: Queue): void {
  scheduleDeletion(tx, queue.account, queue.id, [messagesIn(queue).from, countersIn(queue).from]);
}

function scheduleDeletion(tx: Transaction, account: AccountId, id: QueueId, beginnings: readonly Key[]): void {
  const stamp: Timestamp = tx.timestamp;
  tx.put(deletionKey(account, stamp, id.toString()), encodeDeletion(deletionOfRows(...beginnings)));
}
