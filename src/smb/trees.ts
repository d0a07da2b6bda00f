/** Tree connects: what a client uses of a session, a share of the account or IPC$. */

interface TreeBase {
  readonly id: number;
  /** As the client wrote it. */
  readonly name: string;
  /** MS-SMB2 2.2.10 */
  readonly maximalAccess: number;
  /** Every message of the tree has to be encrypted. */
  readonly isEncryptionRequired: boolean;
}

/** A share of the account. */
export interface DiskTree extends TreeBase {
  readonly kind: 'disk';
  /** The name of the share, in its own letters. */
  readonly share: string;
  /** The id of the share when the tree was connected: another share of the same name is not this one. */
  readonly shareId: bigint;
  /** The second that names a share snapshot; undefined: the share itself. */
  readonly snapshot: bigint | undefined;
}

/** IPC$: named pipes. */
export interface PipeTree extends TreeBase {
  readonly kind: 'pipe';
}

export type Tree = DiskTree | PipeTree;
