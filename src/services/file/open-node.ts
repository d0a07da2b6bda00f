/**
 * Opens a file or directory, as CREATE of SMB does: path, disposition, share modes and the lease are decided in one transaction, which also
 * creates the file or empties it. Only what the open changes in the file is a logged row.
 */
import { randomBytes } from 'node:crypto';
import { checkOwner, type OwnerClaim, OwnerLost } from '../../content/membership/owner-rows.ts';
import type { Transaction } from '../../partition/partition.ts';
import { isReadOnly } from '../../rules/file/attributes.ts';
import {
  attributesAfter,
  type Disposition,
  dispositionRow,
  mayOverwrite,
  type OpenAction,
} from '../../rules/file/dispositions.ts';
import { formatPath, type Path } from '../../rules/file/names.ts';
import { accessFrom, compatible, DELETE, isExcludedByLease, type Open, WRITE } from '../../rules/file/share-mode.ts';
import { isLocked } from '../../rules/lease.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { putFile } from './files.ts';
import {
  addNode,
  checkPath,
  type FoundTarget,
  type PathInput,
  parentId,
  pathQueueKey,
  readParent,
  resolve,
  type Target,
  updateNode,
} from './namespace.ts';
import type { File, Node, NodeKind } from './node-rows.ts';
import {
  type Client,
  countOpen,
  encodeHandle,
  type Handle,
  handleKey,
  isDeletePending,
  type OpenHandle,
  type Opens,
} from './open-rows.ts';
import { checkTakesEntries, openCount, putOpens, readOpens } from './opens.ts';
import { releaseFileContent } from './release-content.ts';
import { checkNoPendingCopy } from './request-checks.ts';
import { ROOT, type Share } from './rows.ts';
import { withLongNames } from './short-names.ts';
import { type AskedSmb, resolveSmb } from './smb-properties.ts';
import { charge } from './usage.ts';

/** Azure's limits of handles on one file or directory, and on the root. */
const HANDLES_MAX = 2_000;
const ROOT_HANDLES_MAX = 10_000;

export interface OpenInput extends PathInput {
  readonly disposition: Disposition;
  /** What is to be there, or to be made; `any` opens either, and makes a file. */
  readonly kind: NodeKind | 'any';
  /** The granted access mask, with all generic rights resolved. A right on attributes alone conflicts with no other open. */
  readonly rights: number;
  /** FILE_SHARE_* as a sum. */
  readonly shareMode: number;
  readonly deletesOnClose: boolean;
  /** Of what is created or overwritten. */
  readonly smb: Pick<AskedSmb, 'times' | 'permission'> & { readonly attributes?: number | undefined };
  readonly client: Client;
}

export interface Opened {
  readonly handle: Handle;
  readonly action: OpenAction;
  readonly node: Node;
}

export async function openNode(storage: Storage, input: OpenInput): Promise<Opened> {
  const path = checkPath(input);
  const access = accessFrom(input.rights);
  if (input.deletesOnClose && !(access & DELETE)) throw fail('AccessDenied');
  const id = randomBytes(8).readBigUInt64BE() >> 1n;
  const claim = claimOf(storage);
  const opening = storage.partition.transact(pathQueueKey(storage, input, path), async (tx) => {
    const long = await withLongNames(tx, storage, input.share, path);
    const target = await resolve(tx, storage, input.share, long);
    const opens = target.node && (await readOpens(tx, target.share, target.node.id, target.opens));
    const { node, action, needsSweep } = target.node
      ? await useNode(tx, storage, target as FoundTarget, opens, input)
      : await createNode(tx, storage, target, input);
    await checkOwner(tx, claim);
    addOpen(tx, { ...target, node }, opens, openHandle(tx, claim, target, long, input), id);
    const handle: Handle = { share: input.share, shareId: target.share.id, node: node.id, id };
    return { handle, action, node, needsSweep };
  });
  const { value } = await opening.catch(async (error: unknown) => {
    if (error instanceof OwnerLost) await storage.owner?.lose(claim);
    throw error;
  });
  const { needsSweep, ...opened } = value;
  if (needsSweep) storage.sweeper.wake();
  return opened;
}

function claimOf({ owner }: Storage): OwnerClaim {
  if (!owner) throw new Error('files are not opened here');
  return owner.claim;
}

interface NodeAfterOpen {
  readonly node: Node;
  readonly action: OpenAction;
  readonly needsSweep: boolean;
}

async function useNode(
  tx: Transaction,
  storage: Storage,
  target: FoundTarget,
  opens: Opens | undefined,
  input: OpenInput,
): Promise<NodeAfterOpen> {
  const { node } = target;
  const { found: action, access: added } = dispositionRow(input.disposition);
  if (isDeletePending(opens)) throw fail('SMBDeletePending');
  if (action === 'ResourceAlreadyExists') throw fail(action);
  if (input.kind !== 'any' && input.kind !== node.kind) throw fail('ResourceTypeMismatch');
  if (node.kind === 'directory' && action !== 'opened') throw fail('ResourceTypeMismatch');
  checkAttributes(node, input, action);
  const open = { access: accessFrom(input.rights) | added, share: input.shareMode };
  if (node.kind === 'file') checkHeldByRest(tx, node, open);
  if (opens?.groups.some((group) => !compatible(open, group))) throw fail('SharingViolation');
  if (node.kind === 'directory' || action === 'opened') return { node, action: 'opened', needsSweep: false };
  return { ...(await emptyFile(tx, storage, target, node, action, input)), action };
}

/** MS-FSA 2.1.5.1.2.1. A directory that is read-only takes entries nevertheless. */
function checkAttributes(node: Node, input: OpenInput, action: OpenAction): void {
  const { attributes } = node;
  if (input.deletesOnClose && (isReadOnly(attributes) || node.id === ROOT)) throw fail('CannotDelete');
  if (node.kind === 'directory') return;
  if (action !== 'opened' && !mayOverwrite(attributes, input.smb.attributes ?? 0)) throw fail('AccessDenied');
  if (isReadOnly(attributes) && accessFrom(input.rights) & WRITE) throw fail('AccessDenied');
}

/** A lease, and a copy onto the file, let others read alone. */
function checkHeldByRest(tx: Transaction, file: File, open: Open): void {
  if (!isExcludedByLease(open)) return;
  if (isLocked(file.lease, tx.now)) throw fail('SharingViolation');
  checkNoPendingCopy(file);
}

async function createNode(tx: Transaction, storage: Storage, target: Target, input: OpenInput): Promise<NodeAfterOpen> {
  const { absent } = dispositionRow(input.disposition);
  const { share } = target;
  if (absent === 'ResourceNotFound') throw fail(absent);
  const { smb } = input;
  if (input.deletesOnClose && isReadOnly(smb.attributes ?? 0)) throw fail('CannotDelete');
  const kind = input.kind === 'directory' ? 'directory' : 'file';
  if (kind === 'file') {
    const empty = { share: input.share, path: input.path, leaseId: undefined, length: 0, content: {}, metadata: {} };
    const { file } = await putFile(tx, storage, target, { ...empty, smb });
    return { node: file, action: absent, needsSweep: false };
  }
  await checkTakesEntries(tx, target);
  const of = { kind, parent: await readParent(tx, target), current: undefined } as const;
  const made = { kind, ...(await resolveSmb(tx, share, smb, of)), metadata: {} } as const;
  return { node: await addNode(tx, target, made), action: absent, needsSweep: false };
}

/** Its id stays, and with it the other opens, which allowed this. */
async function emptyFile(
  tx: Transaction,
  storage: Storage,
  target: Target,
  file: File,
  action: 'overwritten' | 'superseded',
  { smb: asked }: OpenInput,
): Promise<{ readonly node: File; readonly needsSweep: boolean }> {
  const { share } = target;
  await charge(tx, share, -file.length);
  const attributes = attributesAfter(action, file.attributes, asked.attributes ?? 0);
  const written: AskedSmb['times'] =
    action === 'superseded' ? { creation: 'now', lastWrite: 'now' } : { lastWrite: 'now' };
  const of = { kind: 'file', parent: await readParent(tx, target), current: file } as const;
  const smb = await resolveSmb(
    tx,
    share,
    { attributes, times: { ...written, ...asked.times }, permission: asked.permission },
    of,
  );
  const replaced = action === 'superseded' ? { content: {}, metadata: {} } : {};
  const changes = { ...smb, ...replaced, length: 0, contentId: undefined, lease: undefined, copy: undefined };
  const node = await updateNode(tx, share, file, changes);
  return { node, needsSweep: await releaseFileContent(tx, storage, file, share) };
}

function openHandle(tx: Transaction, { epoch }: OwnerClaim, target: Target, path: Path, input: OpenInput): OpenHandle {
  return {
    ...input.client,
    owner: epoch,
    access: accessFrom(input.rights),
    share: input.shareMode,
    rights: input.rights,
    deletesOnClose: input.deletesOnClose,
    parent: parentId(target),
    path: formatPath(path),
    opened: tx.now,
  };
}

function addOpen(
  tx: Transaction,
  { share, ancestors, node }: { readonly share: Share; readonly ancestors: Target['ancestors']; readonly node: Node },
  opens: Opens | undefined,
  handle: OpenHandle,
  id: Handle['id'],
): void {
  const groups = countOpen(opens?.groups ?? [], handle, 1);
  if (openCount(groups) > (node.id === ROOT ? ROOT_HANDLES_MAX : HANDLES_MAX)) throw fail('HandleLimitExceeded');
  putOpens(tx, share, node.id, { ancestors, groups, markedBy: [] });
  tx.put(handleKey(share, node.id, id), encodeHandle(handle));
}
