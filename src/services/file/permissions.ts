/**
 * Permissions: security descriptors that a share has once each, by their hash, and that its files and directories name by it. They are
 * never changed and stay until the share is deleted, so a check of such a row conflicts with nothing.
 */
import { createHash } from 'node:crypto';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { decodeBytes, encodeBytes } from '../../partition/values.ts';
import type { NodeKind } from '../../rules/file/attributes.ts';
import { inheritPermission, mergePermission, ROOT_DESCRIPTOR } from '../../rules/file/inheritance.ts';
import { describeAudit } from '../../rules/file/permission.ts';
import { decodeDescriptor, encodeDescriptor, type SecurityDescriptor } from '../../rules/file/security-descriptor.ts';
import { fail } from './errors.ts';
import { permissionKey, type ShareKeys } from './rows.ts';

/** The hash of a descriptor: two numbers, as in Azure's permission keys. */
export type PermissionHash = string;

/** What a request says about the permission of a file or directory. */
export type AskedPermission =
  | 'inherit'
  | 'preserve'
  | 'source'
  | { readonly key: PermissionHash }
  | {
      readonly descriptor: SecurityDescriptor;
      /** A new file has it as it is, without what it would inherit. */
      readonly isComplete?: boolean;
    };

/** How a named permission becomes that of a file: a new file adds what it inherits, anything else takes it as it is. */
export type PermissionSemantics = 'new' | 'restore';

export interface PermissionTarget {
  readonly kind: NodeKind;
  readonly semantics: PermissionSemantics;
  /** Of the directory above. */
  readonly parent: PermissionHash;
  /** What `preserve` keeps; undefined: the file is new. */
  readonly current?: PermissionHash | undefined;
  /** Of the file that is copied, which may be in another share. */
  readonly source?: Buffer | undefined;
}

interface Known {
  readonly hash: PermissionHash;
  readonly bytes: Buffer;
}

const ROOT = withHash(ROOT_DESCRIPTOR);
const BELOW_ROOT = {
  file: withHash(inheritPermission(ROOT_DESCRIPTOR, 'file')),
  directory: withHash(inheritPermission(ROOT_DESCRIPTOR, 'directory')),
};
/** Every share has them, without a row: most files have no other permission. */
const BUILT_IN: ReadonlyMap<PermissionHash, Buffer> = new Map(
  [ROOT, BELOW_ROOT.file, BELOW_ROOT.directory].map(({ hash, bytes }) => [hash, bytes]),
);

/** The permission of the root directory of a new share. */
export const ROOT_PERMISSION: PermissionHash = ROOT.hash;

export function isBuiltInPermission(hash: PermissionHash): boolean {
  return BUILT_IN.has(hash);
}

/** The hash under which the share has the permission that the request asks for; the row is written if it is new. */
export async function resolvePermission(
  tx: Transaction,
  share: ShareKeys,
  asked: AskedPermission,
  target: PermissionTarget,
): Promise<PermissionHash> {
  if (asked === 'preserve') return target.current ?? target.parent;
  if (asked === 'source' && target.source) return storePermission(tx, share, withHashOf(target.source));
  if (asked === 'inherit' || asked === 'source') return inheritHash(tx, share, target);
  const named = 'key' in asked ? await readDescriptor(tx, share, asked.key) : asked.descriptor;
  const isComplete = 'descriptor' in asked && asked.isComplete;
  if (isComplete || target.semantics === 'restore') return storeDescriptor(tx, share, describeAudit(named));
  const parent = await readDescriptor(tx, share, target.parent);
  return storeDescriptor(tx, share, mergePermission(named, parent, target.kind));
}

/** The bytes of a permission. A key that the share does not know is refused. */
export async function readPermission(at: Snapshot, share: ShareKeys, hash: PermissionHash): Promise<Buffer> {
  const builtIn = BUILT_IN.get(hash);
  if (builtIn !== undefined) return builtIn;
  const row = await at.get(permissionKey(share, hash));
  if (!row) throw fail('FileInvalidPermissionKey');
  return decodeBytes(row);
}

async function inheritHash(tx: Transaction, share: ShareKeys, { kind, parent }: PermissionTarget) {
  if (parent === ROOT.hash || parent === BELOW_ROOT.directory.hash) return BELOW_ROOT[kind].hash;
  return storeDescriptor(tx, share, inheritPermission(await readDescriptor(tx, share, parent), kind));
}

async function readDescriptor(at: Snapshot, share: ShareKeys, hash: PermissionHash): Promise<SecurityDescriptor> {
  return decodeDescriptor(await readPermission(at, share, hash))!;
}

/** Writes the row if the share does not have the descriptor. */
export async function storeDescriptor(tx: Transaction, share: ShareKeys, descriptor: SecurityDescriptor) {
  return storePermission(tx, share, withHash(descriptor));
}

async function storePermission(tx: Transaction, share: ShareKeys, { hash, bytes }: Known): Promise<PermissionHash> {
  const key = permissionKey(share, hash);
  if (!BUILT_IN.has(hash) && !(await tx.get(key))) tx.put(key, encodeBytes(bytes));
  return hash;
}

function withHash(descriptor: SecurityDescriptor): Known {
  const bytes = encodeDescriptor(descriptor);
  // What a file adds by inheritance can exceed what a list can hold.
  if (bytes === undefined) throw fail('FileInvalidPermission');
  return withHashOf(bytes);
}

function withHashOf(bytes: Buffer): Known {
  return { hash: hashDescriptor(bytes), bytes };
}

/** A content hash of 128 bits: the same descriptor has the same key in every share. */
export function hashDescriptor(bytes: Uint8Array): PermissionHash {
  const digest = createHash('sha256').update(bytes).digest();
  return `${digest.readBigUInt64BE(0)}*${digest.readBigUInt64BE(8)}`;
}
