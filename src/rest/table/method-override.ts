import type { Request } from '../operation.ts';
import { fail } from './errors.ts';

const TUNNELLED = ['DELETE', 'GET', 'MERGE', 'PATCH', 'PUT'];

/** For clients whose HTTP does not know the verb. */
export function effectiveMethod({ method, headers }: Pick<Request, 'method' | 'headers'>): string {
  const sent = headers['x-http-method'];
  if (sent === undefined) return method;
  if (String(sent).includes(',')) throw fail('XMethodIncorrectCount');
  if (method !== 'POST') throw fail('XMethodNotUsingPost');
  const meant = String(sent).trim().toUpperCase();
  if (!TUNNELLED.includes(meant)) throw fail('XMethodIncorrectValue');
  return meant;
}
