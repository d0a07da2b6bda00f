/** Outcomes of requests, by the names that logs and metrics share. */
import type { AccessRecord } from './access-record.ts';

const OUTCOMES = [
  'Success',
  'ThrottlingError',
  'ClientTimeoutError',
  'ServerTimeoutError',
  'ClientOtherError',
  'ServerOtherError',
  'AuthorizationError',
  'NetworkError',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

function classifyOutcome({ status, code }: Pick<AccessRecord, 'status' | 'code'>): Outcome {
  if (status === undefined) return 'NetworkError';
  if (status < 300) return 'Success';
  if (status === 503) return 'ThrottlingError';
  if (code === 'OperationTimedOut') return 'ServerTimeoutError';
  if (status >= 500) return 'ServerOtherError';
  if (status === 401 || status === 403 || code === 'InvalidAuthenticationInfo') return 'AuthorizationError';
  return 'ClientOtherError';
}

/** Prefix of the outcome, by the kind of credentials. Metrics have none for tokens. */
const PREFIXES = { key: '', token: '', SAS: 'SAS', anonymous: 'Anonymous' } as const;

export const COLUMNS = OUTCOMES.flatMap((outcome) => ['', 'Anonymous', 'SAS'].map((prefix) => `${prefix}${outcome}`));

export function outcomeColumn(request: Pick<AccessRecord, 'status' | 'code' | 'by'>): string {
  return `${PREFIXES[request.by]}${classifyOutcome(request)}`;
}

/** Since this version the log has the error code of client errors. */
const CODES_SINCE = '2017-04-17';

export function statusText(request: Pick<AccessRecord, 'status' | 'code' | 'by' | 'version'>): string {
  const outcome = classifyOutcome(request);
  if (outcome === 'ClientOtherError' && request.code !== undefined && request.version >= CODES_SINCE)
    return request.code;
  return `${request.by === 'token' ? 'OAuth' : PREFIXES[request.by]}${outcome}`;
}

/** Of anonymous requests, only those that succeeded, got 304, or failed by a fault of the server. */
export function isLogged(request: Pick<AccessRecord, 'status' | 'code' | 'by'>): boolean {
  if (request.by !== 'anonymous' || request.status === 304) return true;
  const outcome = classifyOutcome(request);
  return outcome !== 'ClientOtherError' && outcome !== 'AuthorizationError' && outcome !== 'NetworkError';
}
