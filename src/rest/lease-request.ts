/** The headers of lease requests, and their answers. */
import type { LeaseAnswer } from '../services/common/lease-actions.ts';
import { header, integerHeader, leaseId, requiredHeader } from './params.ts';
import { type Reply, validatorHeaders } from './reply.ts';

export const leaseParams = {
  action: requiredHeader('x-ms-lease-action'),
  leaseId,
  proposedId: header('x-ms-proposed-lease-id'),
  seconds: integerHeader('x-ms-lease-duration', { min: -1, max: 60 }),
  periodSeconds: integerHeader('x-ms-lease-break-period', { min: 0, max: 60 }),
};

export function leaseReply({ action, leaseId: id, breakSeconds, ...found }: LeaseAnswer & { action: string }): Reply {
  const status: Readonly<Record<string, number>> = { acquire: 201, break: 202 };
  return {
    status: status[action.toLowerCase()] ?? 200,
    headers: validatorHeaders(found, { 'x-ms-lease-id': id, 'x-ms-lease-time': breakSeconds }),
  };
}
