/** Rename Directory and Rename File: one entry goes, one is written, and the node; nothing below a directory is touched. */
import type { Transaction } from '../../partition/partition.ts';
import { leaseAfterWrite } from '../../rules/lease.ts';
import { type Metadata, parseMetadata, type SentMetadata } from '../common/names.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import {
  checkPath,
  type FoundFile,
  type FoundTarget,
  moveNode,
  type PathInput,
  pathQueueKey,
  readEntryTimes,
  readParent,
  removeNode,
  resolve,
  type Target,
} from './namespace.ts';
import type { File, Node, NodeKind } from './node-rows.ts';
import type { OpenHandle } from './open-rows.ts';
import { checkNothingOpenBelow, checkSharing, checkTakesEntries, putOpens } from './opens.ts';
import { releaseFileContent } from './release-content.ts';
import { checkFileLease, checkNoPendingCopy, checkNotReadOnly, parseLeaseId } from './request-checks.ts';
import { type AskedSmb, resolveSmb } from './smb-properties.ts';
import { charge } from './usage.ts';

export interface RenameInput extends PathInput {
  /** In the same share. */
  readonly source: Pick<PathInput, 'path' | 'keepsTrailingDots'>;
  readonly replaces: boolean | undefined;
  readonly ignoresReadOnly: boolean | undefined;
  readonly sourceLeaseId: string | undefined;
  readonly destinationLeaseId: string | undefined;
  /** Empty: the metadata stays. */
  readonly metadata: SentMetadata;
  /** Of a file; undefined: it stays. */
  readonly contentType?: string | undefined;
  readonly smb: AskedSmb;
}

/** What a rename does beside giving the node another name. */
export interface RenameOptions extends Pick<RenameInput, 'replaces' | 'ignoresReadOnly' | 'contentType' | 'smb'> {
  readonly destinationLeaseId?: string | undefined;
  /** Undefined: it stays. */
  readonly metadata?: Metadata | undefined;
  /** The handle that the rename comes through: it does not stand in its own way. */
  readonly own?: OpenHandle | undefined;
}

export async function renameNode<Kind extends NodeKind>(
  storage: Storage,
  kind: Kind,
  input: RenameInput,
): Promise<Node & { readonly kind: Kind }> {
  const to = checkPath(input);
  const from = checkPath({ share: input.share, ...input.source });
  if (from.length === 0) throw fail('InvalidInput');
  const sourceLeaseId = parseLeaseId(input.sourceLeaseId, 'x-ms-source-lease-id');
  const destinationLeaseId = parseLeaseId(input.destinationLeaseId, 'x-ms-destination-lease-id');
  const metadata = input.metadata.length > 0 ? parseMetadata(input.metadata) : undefined;
  const { value } = await storage.partition.transact(pathQueueKey(storage, input, to), async (tx) => {
    const source = await resolve(tx, storage, input.share, from);
    if (source.node?.kind !== kind) throw fail('ResourceNotFound');
    const target = await resolve(tx, storage, input.share, to);
    checkFileLease(tx, asFile(source.node), sourceLeaseId, 'write');
    return moveTo(tx, storage, source as FoundTarget, target, { ...input, destinationLeaseId, metadata });
  });
  if (value.needsSweep) storage.sweeper.wake();
  return value.node as Node & { readonly kind: Kind };
}

/** The rename of a node that was found by its path, or through a handle. */
export async function moveTo(
  tx: Transaction,
  storage: Storage,
  source: FoundTarget,
  target: Target,
  options: RenameOptions,
): Promise<{ readonly node: Node; readonly needsSweep: boolean }> {
  const { share } = target;
  const opens = await checkSharing(tx, source, 'rename', options.own);
  checkNoPendingCopy(asFile(source.node));
  // The entry of every directory on the path of the target is checked, so of two renames that would make a cycle one runs again.
  if (target.ancestors.includes(source.node.id)) throw fail('InvalidInput');
  if (source.node.kind === 'directory') await checkNothingOpenBelow(tx, share, source.node.id);
  const needsSweep = await makeRoom(tx, storage, source, target, options);
  const { metadata = source.node.metadata } = options;
  const node = await moveNode(tx, source, target, { ...(await placed(tx, source, target, options)), metadata });
  if (opens) putOpens(tx, share, node.id, { ...opens, ancestors: target.ancestors });
  return { node, needsSweep };
}

/** Removes the file that is replaced. A directory never is; the node itself is not, if only the case of its name changes. */
async function makeRoom(
  tx: Transaction,
  storage: Storage,
  source: FoundTarget,
  target: Target,
  { replaces, ignoresReadOnly, destinationLeaseId }: RenameOptions,
): Promise<boolean> {
  const { node } = target;
  if (node?.id === source.node.id) return false;
  if (!node) await checkTakesEntries(tx, target);
  await checkSharing(tx, target, replaces ? 'delete' : 'none');
  checkFileLease(tx, asFile(node), destinationLeaseId, 'write');
  if (!node) return false;
  if (!replaces || node.kind === 'directory') throw fail('ResourceAlreadyExists');
  if (!ignoresReadOnly) checkNotReadOnly(node);
  checkNoPendingCopy(node);
  await charge(tx, target.share, -node.length);
  await removeNode(tx, target as FoundFile);
  return releaseFileContent(tx, storage, node, target.share);
}

/** The properties of the node in its new place: the change time is new, all others stay unless the request names them. */
async function placed(
  tx: Transaction,
  source: FoundTarget,
  target: Target,
  { smb: asked, contentType }: RenameOptions,
) {
  const { share } = target;
  const current = source.node.kind === 'directory' ? await readEntryTimes(tx, share, source.node) : source.node;
  const smb = await resolveSmb(tx, share, asked, { kind: current.kind, parent: await readParent(tx, target), current });
  if (current.kind === 'directory') return { ...current, ...smb, timesSet: tx.timestamp };
  const content = contentType === undefined ? current.content : { ...current.content, contentType };
  return { ...current, ...smb, content, lease: leaseAfterWrite(current.lease, tx.now) };
}

const asFile = (node: Node | undefined): File | undefined => (node?.kind === 'file' ? node : undefined);
