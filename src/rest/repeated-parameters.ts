/**
 * Parameters of a query that may stand there once: of two, one reader takes the first and another the last, and a signature, which
 * sorts them, is good for either order. Of all others the first counts.
 */
import { commonErrors, errorFactory } from '../services/common/errors.ts';
import { isSasField, malformedField } from './auth/sas-fields.ts';

const fail = errorFactory(commonErrors);

/** They choose the operation, or the state of a blob that it is about. */
const SELECTING = new Set(['comp', 'restype', 'blocklisttype', 'peekonly', 'snapshot', 'versionid']);

/** Throws if this one, in lower case, must not be repeated. */
export function checkRepeatable(name: string): void {
  if (isSasField(name)) throw malformedField(`${name}, which is given more than once`);
  if (!SELECTING.has(name)) return;
  throw fail('InvalidQueryParameterValue', { QueryParameterName: name, Reason: 'It is given more than once.' });
}
