/** The authenticated identity of a caller, with the rights that its credential carries. */
import type { AccessPolicy } from '../../services/common/policies.ts';
import type { Granted } from '../../services/common/storage.ts';

export type Identity = Owner | Anonymous | AccountSas | ServiceSas;

/** Has proved knowledge of a key of the account. */
export interface Owner {
  readonly kind: 'owner';
}

export interface Anonymous {
  readonly kind: 'anonymous';
}

/** Letters, as in the parameters of the signature. */
export interface AccountSas {
  readonly kind: 'account SAS';
  readonly services: string;
  readonly resourceTypes: string;
  readonly permissions: string;
}

export interface ServiceSas {
  readonly kind: 'service SAS';
  readonly permissions: string;
  /** For the Table service: the table, in lower case. */
  readonly table?: string | undefined;
  readonly entities?: Granted['entities'];
  /** The container whose stored policy was used. */
  readonly container?: bigint | undefined;
  /** Headers that replace the stored ones in the reply to a read. */
  readonly responseHeaders?: Readonly<Record<string, string>> | undefined;
}

/** The settings of a container that decide about callers without the account's key. */
export interface ContainerAccess {
  readonly id: bigint;
  readonly level: 'blob' | 'container' | undefined;
  readonly policies: readonly AccessPolicy[];
}

/** Undefined: there is no such container. */
export type LookUpAccess = (container: string) => Promise<ContainerAccess | undefined>;

export const OWNER: Owner = { kind: 'owner' };
export const ANONYMOUS: Anonymous = { kind: 'anonymous' };
