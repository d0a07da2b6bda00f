/**
 * Create contexts: which are honoured, and their answers. A lease or durable handle may be granted nothing, which an answer without its context
 * says; unknown contexts are ignored, as MS-SMB2 3.3.5.9 asks.
 */
import { parseDescriptor } from '../../services/file/handle-properties.ts';
import type { Node } from '../../services/file/node-rows.ts';
import type { AskedPermission } from '../../services/file/permissions.ts';
import { fileIndex } from '../file-views.ts';
import { SmbError } from '../statuses.ts';
import type { DiskTree } from '../trees.ts';
import {
  AaplQuery,
  AaplResponse,
  AllocationSizeContext,
  type CreateContext,
  MaximalAccessResponse,
  QueryOnDiskIdResponse,
  TimewarpContext,
} from '../wire/create-contexts.ts';

export interface AskedContexts {
  readonly wantsMaximalAccess: boolean;
  readonly wantsDiskId: boolean;
  readonly permission: AskedPermission | undefined;
  /** A FILETIME: the file as a share snapshot shows it. */
  readonly timewarp: bigint | undefined;
  /** Bytes for which the client expects room. */
  readonly allocationSize: bigint;
  readonly apple: Buffer | undefined;
}

/** The contexts that are understood, and what becomes of each. */
export const CREATE_CONTEXTS = {
  MxAc: 'answered',
  QFid: 'answered',
  AAPL: 'answered',
  SecD: 'honoured',
  TWrp: 'honoured',
  AlSi: 'honoured',
  ExtA: 'refused',
} as const;
type ContextName = keyof typeof CREATE_CONTEXTS;

const CONTEXT_NAME_MIN = 4;
const AAPL_SERVER_QUERY = 1;
const AAPL_REPLIES = { serverCapabilities: 0x1n, volumeCapabilities: 0x2n } as const;
/** Names are compared without case, and there are no file ids by which a client could find a file. */
const AAPL_UNIX_BASED = 0x4n;

/** @throws SmbError for contexts that have to be refused */
export function parseContexts(contexts: readonly CreateContext[]): AskedContexts {
  const byName = new Map<ContextName, Buffer>();
  for (const { name, data } of contexts) {
    if (name.length < CONTEXT_NAME_MIN) throw new SmbError('INVALID_PARAMETER');
    if (isUnderstood(name)) byName.set(name, data);
  }
  // Extended attributes are not kept, so that they must not seem to be.
  if (byName.has('ExtA')) throw new SmbError('EAS_NOT_SUPPORTED');
  const descriptor = byName.get('SecD');
  const timewarp = byName.get('TWrp');
  const allocation = byName.get('AlSi');
  return {
    wantsMaximalAccess: byName.has('MxAc'),
    wantsDiskId: byName.has('QFid'),
    permission: descriptor && parseDescriptor(descriptor),
    timewarp: timewarp && TimewarpContext.decode(timewarp).timestamp,
    allocationSize: allocation ? AllocationSizeContext.decode(allocation).allocationSize : 0n,
    apple: byName.get('AAPL'),
  };
}

function isUnderstood(name: string): name is ContextName {
  return Object.hasOwn(CREATE_CONTEXTS, name);
}

export function answerContexts(asked: AskedContexts, tree: DiskTree, node: Node): CreateContext[] {
  const answers: CreateContext[] = [];
  if (asked.wantsMaximalAccess) {
    const data = MaximalAccessResponse.encode({ queryStatus: 0, maximalAccess: tree.maximalAccess });
    answers.push({ name: 'MxAc', data });
  }
  if (asked.wantsDiskId) {
    const data = QueryOnDiskIdResponse.encode({ diskFileId: fileIndex(tree, node), volumeId: tree.shareId });
    answers.push({ name: 'QFid', data });
  }
  const apple = asked.apple && answerApple(asked.apple);
  if (apple) answers.push({ name: 'AAPL', data: apple });
  return answers;
}

/** Undefined: another command than the query for capabilities. */
function answerApple(data: Buffer): Buffer | undefined {
  const { command, requestBitmap } = AaplQuery.decode(data);
  if (command !== AAPL_SERVER_QUERY) return undefined;
  const replyBitmap = requestBitmap & (AAPL_REPLIES.serverCapabilities | AAPL_REPLIES.volumeCapabilities);
  return AaplResponse.encode({ command, replyBitmap, serverCapabilities: AAPL_UNIX_BASED, volumeCapabilities: 0n });
}
