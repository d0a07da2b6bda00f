/** Queues as rows; docs/adr/0002-rows.md has the schema. Their messages are in message-rows.ts. */
import { encodeTrash, trashKey, trashOfRows } from '../../content/rows.ts';
import { encodeKey, type Key, type Range, under } from '../../partition/keys.ts';
import type { Row, Snapshot, Stamp, Transaction } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import type { Metadata } from '../common/metadata.ts';
import * as names from '../common/names.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { countsIn } from './message-counts.ts';

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
export const namesFrom = (account: AccountId, prefix: string): Key => names.namesFrom(account, 'queue', prefix);
export const propertiesKey = (account: AccountId, id: QueueId): Key => names.propertiesKey(account, 'queue', id);
/** Where the requests for one queue take turns, before its id is known. */
export const anchorOf = (account: AccountId, ...path: string[]): Key => encodeKey([account, 'queue', ...path]);
export const messagesIn = ({ account, id, gen }: Queue): Range => under([account, 'q', id, gen]);

export const encodeQueue = (id: QueueId, gen: bigint): Buffer => {
  const more = Buffer.alloc(8);
  more.writeBigUInt64BE(gen);
  return names.encodeName(id, more);
};
export const decodeQueue = (account: AccountId, row: Pick<Row, 'value'>): Queue => ({
  account,
  id: names.decodeName(row),
  gen: names.behindId(row).readBigUInt64BE(),
});
export const encodeProperties = ({ metadata, policies }: QueueProperties): Buffer =>
  encodeValue({ metadata, policies });
export const decodeProperties = (row: Row): QueueProperties => decodeValue<QueueProperties>(row);

/** Whose queue, and for whom. */
export type Place = Pick<Storage, 'account' | 'granted'>;

export async function queueAt(at: Snapshot, place: Place, queue: string): Promise<Queue> {
  return mayUse(place, await at.get(nameKey(place.account, queue)));
}

export function mayUse({ account, granted }: Place, name: Row | undefined): Queue {
  if (!name) throw fail('QueueNotFound');
  const found = decodeQueue(account, name);
  if (granted?.container !== undefined && granted.container !== found.id) throw fail('QueueNotFound');
  return found;
}

export async function propertiesAt(at: Snapshot, { account, id }: Queue): Promise<QueueProperties> {
  return decodeProperties((await at.get(propertiesKey(account, id)))!);
}

/** Every generation; no name leads to them any more. */
export function trashQueue(tx: Transaction, account: AccountId, id: QueueId): void {
  const beginnings = [encodeKey([account, 'q', id]), encodeKey([account, '#', id])];
  putTrash(tx, account, id, beginnings);
}

/** Whoever adds to a generation checks the name, which has another one now. */
export function trashGeneration(tx: Transaction, queue: Queue): void {
  putTrash(tx, queue.account, queue.id, [messagesIn(queue).from, countsIn(queue).from]);
}

function putTrash(tx: Transaction, account: AccountId, id: QueueId, beginnings: readonly Key[]): void {
  const stamp: Stamp = tx.stamp;
  tx.put(trashKey(account, stamp, id.toString()), encodeTrash(trashOfRows(...beginnings)));
}
