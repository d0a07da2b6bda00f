/**
 * Opens as volatile rows: a summary for each file or directory that is open, which every operation on it checks, and a row for each handle.
 * The summaries of a share are its index of opens.
 */
import { decodeKey, type Key, type Range, volatileKey, volatileKeysUnder } from '../../partition/keys.ts';
import type { Instant, Row } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import type { Open } from '../../rules/file/share-mode.ts';
import type { AccountId } from '../common/storage.ts';
import type { NodeId, ShareId, ShareKeys } from './rows.ts';

/** Drawn at random before the transaction: no two handles have the same one, in all processes. */
export type HandleId = bigint;

/** The node keeps its id through renames, so a handle needs no path. */
export interface Handle {
  /** By the name every commit checks that the share exists. */
  readonly share: string;
  readonly shareId: ShareId;
  readonly node: NodeId;
  readonly id: HandleId;
}

/** Opens of one owner with the same access and share mode. */
export interface OpenGroup extends Open {
  /** The epoch of the process that holds them: if it is no member any more, they count as absent. */
  readonly owner: bigint;
  readonly count: number;
}

export interface Opens {
  /** The directories above the node, from the root on. They stay: a directory is not renamed while something below it is open. */
  readonly ancestors: readonly NodeId[];
  readonly groups: readonly OpenGroup[];
  /** Owners of the handles that marked the node for deletion by its last close. A mark is gone with its owner, as a handle is. */
  readonly markedBy: readonly bigint[];
}

export interface Client {
  /** Of SMB: a number of 64 bits. */
  readonly session: string;
  /** Address and port. */
  readonly ip: string;
  readonly name?: string | undefined;
}

export interface OpenHandle extends Open, Client {
  readonly owner: bigint;
  /** The granted access mask. */
  readonly rights: number;
  readonly deletesOnClose: boolean;
  /** The directory of the node when it was opened. */
  readonly parent: NodeId;
  /** As it was opened. */
  readonly path: string;
  readonly opened: Instant;
}

export const opensKey = ({ account, id }: ShareKeys, node: NodeId): Key => volatileKey([account, 'O', id, node]);
export const opensIn = ({ account, id }: ShareKeys): Range => volatileKeysUnder([account, 'O', id]);
export const opensInAccount = (account: AccountId): Range => volatileKeysUnder([account, 'O']);
export const nodeFromOpensKey = (key: Key): NodeId => decodeKey(key)[3] as NodeId;
export const handleKey = ({ account, id }: ShareKeys, node: NodeId, handle: HandleId): Key =>
  volatileKey([account, 'o', id, node, handle]);
export const handlesOf = ({ account, id }: ShareKeys, node: NodeId): Range =>
  volatileKeysUnder([account, 'o', id, node]);
export const handlesIn = (account: AccountId): Range => volatileKeysUnder([account, 'o']);
export const idFromHandleKey = (key: Key): HandleId => decodeKey(key)[4] as HandleId;

export function encodeOpens({ ancestors, groups, markedBy }: Opens): Buffer {
  return encodeValue({
    ancestors: ancestors.map(String),
    groups: groups.map(({ owner, access, share, count }) => [owner.toString(), access, share, count]),
    markedBy: markedBy.map(String),
  });
}

export function decodeOpens(row: Row): Opens {
  const { ancestors, groups, markedBy } = decodeValue<StoredOpens>(row);
  return {
    ancestors: ancestors.map(BigInt),
    groups: groups.map(([owner, access, share, count]) => ({ owner: BigInt(owner), access, share, count })),
    markedBy: markedBy.map(BigInt),
  };
}

interface StoredOpens {
  readonly ancestors: readonly string[];
  readonly groups: readonly (readonly [owner: string, access: number, share: number, count: number])[];
  readonly markedBy: readonly string[];
}

export function encodeHandle(handle: OpenHandle): Buffer {
  const { owner, parent, opened } = handle;
  return encodeValue({
    ...handle,
    owner: owner.toString(),
    parent: parent.toString(),
    opened: opened.toString(),
  });
}

export function decodeHandle(row: Row): OpenHandle {
  const { owner, parent, opened, ...handle } = decodeValue<StoredHandle>(row);
  return { ...handle, owner: BigInt(owner), parent: BigInt(parent), opened: BigInt(opened) };
}

type StoredHandle = Omit<OpenHandle, 'owner' | 'parent' | 'opened'> &
  Readonly<Record<'owner' | 'parent' | 'opened', string>>;

export const isDeletePending = (opens: Opens | undefined): boolean => opens !== undefined && opens.markedBy.length > 0;

/** All processes that a summary names. */
export const ownersOf = ({ groups, markedBy }: Opens): ReadonlySet<bigint> =>
  new Set([...groups.map(({ owner }) => owner), ...markedBy]);

/** Without the handles and the marks of these processes. Without a handle the marks mean nothing. */
export const withoutOwners = ({ groups, markedBy, ...opens }: Opens, gone: ReadonlySet<bigint>): Opens => ({
  ...opens,
  groups: groups.filter(({ owner }) => !gone.has(owner)),
  markedBy: markedBy.filter((owner) => !gone.has(owner)),
});

const isSameGroup = (one: OpenGroup, other: Omit<OpenGroup, 'count'>): boolean =>
  one.owner === other.owner && one.access === other.access && one.share === other.share;

/** With one open more, or fewer. */
export function countOpen(groups: readonly OpenGroup[], open: Omit<OpenGroup, 'count'>, by: 1 | -1): OpenGroup[] {
  const { owner, access, share } = open;
  const count = (groups.find((group) => isSameGroup(group, open))?.count ?? 0) + by;
  const others = groups.filter((group) => !isSameGroup(group, open));
  return count > 0 ? [...others, { owner, access, share, count }] : others;
}
