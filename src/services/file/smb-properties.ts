/** SMB properties: what a request asks for, and what the directory or file has then. */
import type { Transaction } from '../../partition/partition.ts';
import type { Directory, Node, NodeKind, NodeTimes, SmbProperties } from './node-rows.ts';
import type { Share } from './rows.ts';

/** What is undefined stays, or is the default of a new node. */
export interface AskedSmb {
  readonly attributes?: number | undefined;
  readonly times?: Partial<NodeTimes> | undefined;
  readonly permission?: string | undefined;
}

export interface SmbTarget {
  readonly kind: NodeKind;
  /** Whose permission a new node inherits. */
  readonly parent: Directory;
  /** Undefined: the node is new. */
  readonly current: Node | undefined;
}

const DIRECTORY = 0x10;
const ARCHIVE = 0x20;

export async function resolveSmb(
  tx: Transaction,
  _share: Share,
  asked: AskedSmb,
  { kind, parent, current }: SmbTarget,
): Promise<SmbProperties> {
  const { now } = tx;
  return {
    attributes: asked.attributes ?? current?.attributes ?? (kind === 'directory' ? DIRECTORY : ARCHIVE),
    times: { creation: now, lastWrite: now, change: now, ...current?.times, ...asked.times },
    permission: asked.permission ?? current?.permission ?? parent.permission,
  };
}
