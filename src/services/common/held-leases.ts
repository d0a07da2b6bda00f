/**
 * The leases that this process has granted and that have not ended, for monitoring only: what is decided about leases is decided by rows.
 * Leases of an earlier process appear with their next renewal.
 */
import type { Instant } from '../../partition/partition.ts';
import type { Lease } from '../../rules/lease.ts';
import type { AccountId } from './storage.ts';

/** A bound of memory, and of the work of each count. */
const HELD_MAX = 10_000;

export interface LeasedName {
  /** Undefined: the Blob service. */
  readonly service?: 'file';
  readonly container: string;
  /** Undefined: the container or share itself. */
  readonly blob?: string | undefined;
}

export class HeldLeases {
  /** By account and name; no end: until it is released. */
  readonly #ends = new Map<string, Instant | undefined>();

  set(account: AccountId, name: LeasedName, until: Instant | undefined): void {
    if (this.#ends.size < HELD_MAX) this.#ends.set(keyOf(account, name), until);
  }

  /** The lease as an operation has left it. */
  record(account: AccountId, name: LeasedName, lease: Lease | undefined): void {
    if (!lease || lease.state === 'broken') this.end(account, name);
    else this.set(account, name, lease.until);
  }

  /** The lease was released, or the blob is deleted. */
  end(account: AccountId, name: LeasedName): void {
    if (this.#ends.size > 0) this.#ends.delete(keyOf(account, name));
  }

  /** The container is deleted, with its blobs. */
  endAll(account: AccountId, container: Omit<LeasedName, 'blob'>): void {
    const prefix = keyOf(account, container);
    for (const key of this.#ends.keys()) if (key.startsWith(prefix)) this.#ends.delete(key);
  }

  count(now: Instant): number {
    for (const [key, until] of this.#ends) if (until !== undefined && until <= now) this.#ends.delete(key);
    return this.#ends.size;
  }
}

function keyOf(account: AccountId, { service, container, blob = '' }: LeasedName): string {
  return `${account}/${service ?? 'blob'}/${container}/${blob}`;
}
