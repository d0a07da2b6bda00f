/** Rename Directory and Rename File: one entry goes, one is written, and the node; nothing below a directory is touched. */
import type { Transaction } from '../../partition/partition.ts';
import { leaseAfterWrite } from '../../rules/lease.ts';
import { parseMetadata, type SentMetadata } from '../common/names.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import {
  checkPath,
  decodeParent,
  type FoundFile,
  moveNode,
  type PathInput,
  pathQueueKey,
  readEntryTimes,
  removeNode,
  resolve,
  type Target,
} from './namespace.ts';
import type { File, Node, NodeKind } from './node-rows.ts';
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

type FoundTarget = Target & { readonly node: Node };

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
  const metadata = input.metadata.length > 0 ? { metadata: parseMetadata(input.metadata) } : {};
  const { value } = await storage.partition.transact(pathQueueKey(storage, input, to), async (tx) => {
    const source = await resolve(tx, storage, input.share, from);
    if (source.node?.kind !== kind) throw fail('ResourceNotFound');
    const target = await resolve(tx, storage, input.share, to);
    checkFileLease(tx, asFile(source.node), sourceLeaseId, 'write');
    // The entry of every directory on the path of the target is checked, so of two renames that would make a cycle one runs again.
    if (target.ancestors.includes(source.node.id)) throw fail('InvalidInput');
    const needsSweep = await makeRoom(tx, storage, source as FoundTarget, target, { ...input, destinationLeaseId });
    const node = await placed(tx, source as FoundTarget, target, input);
    return { needsSweep, node: moveNode(tx, source as FoundTarget, target, { ...node, ...metadata }) };
  });
  if (value.needsSweep) storage.sweeper.wake();
  return value.node as Node & { readonly kind: Kind };
}

/** Removes the file that is replaced. A directory never is; the node itself is not, if only the case of its name changes. */
async function makeRoom(
  tx: Transaction,
  storage: Storage,
  source: FoundTarget,
  target: Target,
  { replaces, ignoresReadOnly, destinationLeaseId }: RenameInput,
): Promise<boolean> {
  const { node } = target;
  if (node?.id === source.node.id) return false;
  checkFileLease(tx, asFile(node), destinationLeaseId, 'write');
  if (!node) return false;
  if (!replaces || node.kind === 'directory') throw fail('ResourceAlreadyExists');
  if (!ignoresReadOnly) checkNotReadOnly(node);
  checkNoPendingCopy(node);
  await charge(tx, target.share, -node.length);
  removeNode(tx, target as FoundFile);
  return releaseFileContent(tx, storage, node);
}

/** The properties of the node in its new place: the change time is new, all others stay unless the request names them. */
async function placed(tx: Transaction, source: FoundTarget, target: Target, { smb: asked, contentType }: RenameInput) {
  const { share } = target;
  const current = source.node.kind === 'directory' ? await readEntryTimes(tx, share, source.node) : source.node;
  const smb = await resolveSmb(tx, share, asked, { kind: current.kind, parent: decodeParent(target), current });
  if (current.kind === 'directory') return { ...current, ...smb, timesSet: tx.timestamp };
  const content = contentType === undefined ? current.content : { ...current.content, contentType };
  return { ...current, ...smb, content, lease: leaseAfterWrite(current.lease, tx.now) };
}

const asFile = (node: Node | undefined): File | undefined => (node?.kind === 'file' ? node : undefined);
