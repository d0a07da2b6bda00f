/**
 * Parameters of a query that may stand there once: of two, one reader takes the first and another the last, and a signature, which
 * sorts them, is good for either order. Of all others the first counts.
 */
import { commonErrors, raising } from '../services/common/errors.ts';
import { isSasField, malformed } from './auth/sas-fields.ts';

const fail = raising(commonErrors);

/** They choose the operation, or the state of a blob that it is about. */
const CHOOSING = new Set(['comp', 'restype', 'blocklisttype', 'peekonly', 'snapshot', 'versionid']);

/** Throws if this one, in lower case, must not be repeated. */
export function checkRepeatable(name: string): void {
  if (isSasField(name)) throw malformed(`${name}, which is given more than once`);
  if (!CHOOSING.has(name)) return;
  throw fail('InvalidQueryParameterValue', { QueryParameterName: name, Reason: 'It is given more than once.' });
}
