/** A lease as clients see it; the duration shows only while it is held. */
import type { Lease, LeaseState } from '../../rules/lease.ts';

function status(state: LeaseState): string {
  return state === 'leased' || state === 'breaking' ? 'locked' : 'unlocked';
}

function duration(lease: Lease | undefined, state: LeaseState): string | undefined {
  if (state !== 'leased' || lease?.state !== 'leased') return undefined;
  return lease.seconds === -1 ? 'infinite' : 'fixed';
}

export function leaseHeaders(lease: Lease | undefined, state: LeaseState) {
  return {
    'x-ms-lease-status': status(state),
    'x-ms-lease-state': state,
    'x-ms-lease-duration': duration(lease, state),
  };
}

export function leaseElements(lease: Lease | undefined, state: LeaseState): string {
  const held = duration(lease, state);
  return (
    `<LeaseStatus>${status(state)}</LeaseStatus><LeaseState>${state}</LeaseState>` +
    (held ? `<LeaseDuration>${held}</LeaseDuration>` : '')
  );
}
