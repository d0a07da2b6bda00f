/** Who asks, as far as his rights go. */
import type { Granted } from '../../services/common/storage.ts';

export type Identity = Owner | Anonymous | AccountSas | ServiceSas;

/** Has shown a key of the account. */
export interface Owner {
  readonly kind: 'owner';
}

export interface Anonymous {
  readonly kind: 'anonymous';
}

/** Letters, as they stand in the signature. */
export interface AccountSas {
  readonly kind: 'account SAS';
  readonly services: string;
  readonly resourceTypes: string;
  readonly permissions: string;
}

export interface ServiceSas {
  readonly kind: 'service SAS';
  readonly permissions: string;
  /** Of a table: which one, in lower case. */
  readonly table?: string | undefined;
  readonly entities?: Granted['entities'];
  /** The container whose stored policy was used. */
  readonly container?: bigint | undefined;
  /** What the answer of a read is to say instead of what is stored. */
  readonly responseHeaders?: Readonly<Record<string, string>> | undefined;
}

export const OWNER: Owner = { kind: 'owner' };
export const ANONYMOUS: Anonymous = { kind: 'anonymous' };
