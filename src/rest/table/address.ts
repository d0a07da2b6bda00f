/** OData addresses: tables, and entities by their keys in parentheses. */
import { decodePart, type ParsePath } from '../address.ts';
import type { Reader } from '../operation.ts';
import { reader } from '../params.ts';
import { fail } from './errors.ts';

/** The entity set of all tables, in lower case. */
const TABLES = 'tables';
const TRAILING_SLASHES = /(?<!\/)\/+$/;

/**
 * Names are checked by the operations, not here. A malformed address becomes one with malformed keys: it is refused after
 * authorization, so that callers without a right learn nothing.
 */
export const parseTablePath: ParsePath = (rest) => {
  const text = decodePart(rest.slice(1));
  if (text === '') return { container: '', item: '', shape: '/' };
  const open = text.indexOf('(');
  // Slashes after a name are ignored, even encoded.
  const named = open < 0 ? text : text.slice(0, open);
  const name = named.endsWith('/') ? named.replace(TRAILING_SLASHES, '') : named;
  if (name === '$batch' && open < 0) return { container: '', item: '', shape: '/$batch' };
  const malformed = { container: '', item: text, shape: '/{table}({keys})' } as const;
  if (name === '' || name.includes('/') || (open >= 0 && !text.endsWith(')'))) return malformed;
  const item = open < 0 ? '' : text.slice(open + 1, -1).trim();
  if (name.toLowerCase() !== TABLES) {
    return { container: name, item, shape: item === '' ? '/{table}' : '/{table}({keys})' };
  }
  if (item === '') return { container: '', item, shape: '/Tables' };
  const literals = parseKeyLiterals(item);
  const given = [literals?.get(''), literals?.get('TableName')].filter((value) => value !== undefined);
  const [table] = given;
  const isNamed = table !== undefined && given.at(-1) === table && given.length === literals!.size;
  return isNamed ? { container: table, item, shape: '/Tables({table})' } : malformed;
};

export interface AddressedKeys {
  readonly partitionKey: string;
  readonly rowKey: string;
}

/** `PartitionKey='a',RowKey='b'`, in either order. */
export const entityKeys: Reader<AddressedKeys> = reader(({ item }) => {
  const literals = parseKeyLiterals(item);
  const partitionKey = literals?.get('PartitionKey');
  const rowKey = literals?.get('RowKey');
  if (partitionKey === undefined || rowKey === undefined || literals!.size > 2) throw fail('QuerySyntax');
  if (UNADDRESSABLE.test(partitionKey) || UNADDRESSABLE.test(rowKey)) throw fail('QuerySyntax');
  return { partitionKey, rowKey };
});

/** These would begin another segment of the path. */
const UNADDRESSABLE = /[/\\]/;

const NAME = /\s*(?:([A-Za-z]\w*)\s*=\s*)?'/y;
const SEPARATOR = /\s*(,|$)/y;

/** Literals by name; '' is the key of a literal without a name. Quotes within a literal are doubled. Undefined: malformed. */
function parseKeyLiterals(item: string): ReadonlyMap<string, string> | undefined {
  const literals = new Map<string, string>();
  for (let at = 0; ; ) {
    const name = matchAt(NAME, item, at);
    if (!name) return undefined;
    at += name[0].length;
    let value = '';
    for (;;) {
      const quote = item.indexOf("'", at);
      if (quote < 0) return undefined;
      value += item.slice(at, quote);
      at = quote + 1;
      if (item[at] !== "'") break;
      value += "'";
      at++;
    }
    const key = name[1] ?? '';
    const separator = matchAt(SEPARATOR, item, at);
    if (!separator || literals.has(key)) return undefined;
    literals.set(key, value);
    at += separator[0].length;
    if (separator[1] !== ',') return literals;
  }
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}
