/** Queues: validation of requests before any row is read, and queues as rows; docs/adr/0002-row-schema.md has the schema. */
import { deletionKey } from '../../content/rows.ts';
import { encodeKey, type Key, keysUnder, type Range } from '../../partition/keys.ts';
import type { Row, Snapshot, Transaction } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import { queueNameFault } from '../../rules/names.ts';
import {
  limitsFault,
  parseReceipt,
  type Receipt,
  type TimingFault,
  VISIBILITY_SECONDS_MAX,
} from '../../rules/queue/messages.ts';
import { deletionOfRows, encodeDeletion } from '../common/deletions.ts';
import type { Metadata } from '../common/names.ts';
import * as names from '../common/names.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { countersIn } from './message-rows.ts';

export type QueueId = bigint;

/** The value of a name row. */
export interface Queue {
  readonly account: AccountId;
  readonly id: QueueId;
  /** Messages belong to a generation. Only Clear Messages starts a new one, so every writer of messages must read the name row. */
  readonly gen: bigint;
}

export interface QueueProperties {
  readonly metadata: Metadata;
  readonly policies: readonly AccessPolicy[];
}

export const nameKey = (account: AccountId, queue: string): Key => names.nameKey(account, 'queue', queue);
export const nameKeyPrefix = (account: AccountId, prefix: string): Key => names.nameKeyPrefix(account, 'queue', prefix);
export const propertiesKey = (account: AccountId, id: QueueId): Key => names.propertiesKey(account, 'queue', id);
/** By name, since the queue's id is not known before the transaction. */
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

/** The account, and the queue for which the request is authorized. */
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

/** Of every generation. */
export function scheduleQueueDeletion(tx: Transaction, account: AccountId, id: QueueId): void {
  const prefixes = [encodeKey([account, 'q', id]), encodeKey([account, '#', id])];
  scheduleDeletion(tx, account, id, prefixes);
}

/** No transaction adds to the old generation any more: its read check of the name row would fail. */
export function scheduleGenerationDeletion(tx: Transaction, queue: Queue): void {
  scheduleDeletion(tx, queue.account, queue.id, [messagesIn(queue).from, countersIn(queue).from]);
}

function scheduleDeletion(tx: Transaction, account: AccountId, id: QueueId, prefixes: readonly Key[]): void {
  tx.put(deletionKey(account, tx.timestamp, id.toString()), encodeDeletion(deletionOfRows(...prefixes)));
}

const MESSAGES_MAX = 32;
const TEXT_BYTES_MAX = 64 << 10;

export function checkQueueName(name: string): void {
  const fault = queueNameFault(name);
  if (fault) throw fail(fault);
}

export function checkMessageCount(count: number): void {
  throwIfFault(limitsFault('numofmessages', count, { min: 1, max: MESSAGES_MAX }));
}

/** @param min a dequeued message is invisible for at least a second */
export function checkVisibility(seconds: number, min: 0 | 1): void {
  throwIfFault(limitsFault('visibilitytimeout', seconds, { min, max: VISIBILITY_SECONDS_MAX }));
}

export function throwIfFault(fault: TimingFault | undefined): void {
  if (!fault) return;
  const named = { QueryParameterName: fault.parameter, QueryParameterValue: String(fault.value) };
  if ('reason' in fault) throw fail('InvalidQueryParameterValue', { ...named, Reason: fault.reason });
  const allowed = { MinimumAllowed: String(fault.min), MaximumAllowed: String(fault.max) };
  throw fail('OutOfRangeQueryParameterValue', { ...named, ...allowed });
}

export function checkMessageText(text: string): void {
  // A UTF-16 unit takes at most three bytes of UTF-8.
  if (text.length * 3 <= TEXT_BYTES_MAX || Buffer.byteLength(text) <= TEXT_BYTES_MAX) return;
  throw fail('RequestBodyTooLarge', { MaxLimit: String(TEXT_BYTES_MAX) });
}

export function checkReceipt(text: string): Receipt {
  const receipt = parseReceipt(text);
  if (receipt) return receipt;
  const named = { QueryParameterName: 'popreceipt', QueryParameterValue: text };
  throw fail('InvalidQueryParameterValue', { ...named, Reason: 'Invalid pop receipt value.' });
}
