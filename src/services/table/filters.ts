/** $filter: parsing, with Azure's error codes. */
import { type Filter, FilterError, parseFilter } from '../../rules/table/filter.ts';
import { fail } from './errors.ts';

/** `text`: the value of $filter. */
export function parseQueryFilter(text: string): Filter {
  try {
    return parseFilter(text);
  } catch (error) {
    if (error instanceof FilterError && error.isUnsupported) throw fail('NotImplemented');
    if (error instanceof FilterError) throw fail('InvalidInput', undefined, error.message);
    throw error;
  }
}
