/** What became of a request, in the words that logs and metrics share. */
import type { AccessRecord } from './access-record.ts';

export const OUTCOMES = [
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

export function classifyOutcome({ status, code }: Pick<AccessRecord, 'status' | 'code'>): Outcome {
  if (status === undefined) return 'NetworkError';
  if (status < 300) return 'Success';
  if (status === 503) return 'ThrottlingError';
  if (code === 'OperationTimedOut') return 'ServerTimeoutError';
  if (status >= 500) return 'ServerOtherError';
  if (status === 401 || status === 403 || code === 'InvalidAuthenticationInfo') return 'AuthorizationError';
  return 'ClientOtherError';
}

/** Who asked stands before the outcome. The metrics know no tokens. */
const PREFIXES = { key: '', token: '', SAS: 'SAS', nobody: 'Anonymous' } as const;

export const COLUMNS = OUTCOMES.flatMap((outcome) => ['', 'Anonymous', 'SAS'].map((prefix) => `${prefix}${outcome}`));

export function outcomeColumn(request: Pick<AccessRecord, 'status' | 'code' | 'by'>): string {
  return `${PREFIXES[request.by]}${classifyOutcome(request)}`;
}

/** Since this version the log says of errors that are the caller's which one it was. */
const CODES_SINCE = '2017-04-17';

export function statusText(request: Pick<AccessRecord, 'status' | 'code' | 'by' | 'version'>): string {
  const outcome = classifyOutcome(request);
  if (outcome === 'ClientOtherError' && request.code !== undefined && request.version >= CODES_SINCE)
    return request.code;
  return `${request.by === 'token' ? 'OAuth' : PREFIXES[request.by]}${outcome}`;
}

/** Of strangers only what they got, what was not their fault, and that their copy is still good. */
export function isLogged(request: Pick<AccessRecord, 'status' | 'code' | 'by'>): boolean {
  if (request.by !== 'nobody' || request.status === 304) return true;
  const outcome = classifyOutcome(request);
  return outcome !== 'ClientOtherError' && outcome !== 'AuthorizationError' && outcome !== 'NetworkError';
}
