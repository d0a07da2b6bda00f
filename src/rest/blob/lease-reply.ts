/** A lease as clients see it; the duration shows only while it is held. */
import type { Lease, LeaseState } from '../../rules/lease.ts';

export function leaseStatus(state: LeaseState): string {
  return state === 'leased' || state === 'breaking' ? 'locked' : 'unlocked';
}

export function leaseDuration(lease: Lease | undefined, state: LeaseState): string | undefined {
  if (state !== 'leased' || lease?.state !== 'leased') return undefined;
  return lease.seconds === -1 ? 'infinite' : 'fixed';
}

export function leaseHeaders(lease: Lease | undefined, state: LeaseState) {
  return {
    'x-ms-lease-status': leaseStatus(state),
    'x-ms-lease-state': state,
    'x-ms-lease-duration': leaseDuration(lease, state),
  };
}

export function leaseElements(lease: Lease | undefined, state: LeaseState): string {
  const held = leaseDuration(lease, state);
  return (
    `<LeaseStatus>${leaseStatus(state)}</LeaseStatus><LeaseState>${state}</LeaseState>` +
    (held ? `<LeaseDuration>${held}</LeaseDuration>` : '')
  );
}
