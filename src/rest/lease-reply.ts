/** Lease properties in headers and XML; the duration is shown only while the lease is held. */
import type { Lease, LeaseState } from '../rules/lease.ts';

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
  const duration = leaseDuration(lease, state);
  return (
    `<LeaseStatus>${leaseStatus(state)}</LeaseStatus><LeaseState>${state}</LeaseState>` +
    (duration ? `<LeaseDuration>${duration}</LeaseDuration>` : '')
  );
}
