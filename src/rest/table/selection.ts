/** $select: the projection of an answer. */
import { SELECT_NAMES_MAX } from '../../base/input-limits.ts';
import { memoize } from '../../base/memoize.ts';
import { jsonString, makeNameTable, type NameTable } from '../../services/table/entity-rows.ts';
import { fail } from './errors.ts';

export interface Selection {
  /** The value of $select. */
  readonly text: string;
  /** Undefined: all properties. */
  readonly names: SelectedNames | undefined;
}

export interface SelectedNames {
  readonly partitionKey: boolean;
  readonly rowKey: boolean;
  readonly timestamp: boolean;
  /** The other properties, in the order of $select. */
  readonly properties: NameTable;
  /** The JSON of all `properties` as nulls, with commas: a run of those that an entity lacks is one copy. */
  readonly nulls: Buffer;
  /** Where in `nulls` each property begins; the last is the end, after one more comma. */
  readonly nullStarts: readonly number[];
}

export const parseSelection = memoize((text): Selection => ({ text, names: parseNames(text) }));

const SYSTEM = new Set(['PartitionKey', 'RowKey', 'Timestamp']);

function parseNames(text: string): SelectedNames | undefined {
  if (text.trim() === '') return undefined;
  const listed = text.split(',', SELECT_NAMES_MAX + 1);
  if (listed.length > SELECT_NAMES_MAX) {
    throw fail('InvalidInput', undefined, `$select names at most ${SELECT_NAMES_MAX} properties.`);
  }
  const names = new Set(listed.map((name) => name.trim()));
  if (names.has('*')) return undefined;
  // Metadata depends on the level of metadata alone.
  const properties = [...names].filter((name) => name !== '' && !name.startsWith('odata.') && !SYSTEM.has(name));
  const nulls = properties.map((name) => `${jsonString(name)}:null`);
  const nullStarts = [0];
  for (const text of nulls) nullStarts.push(nullStarts.at(-1)! + text.length + 1);
  return {
    partitionKey: names.has('PartitionKey'),
    rowKey: names.has('RowKey'),
    timestamp: names.has('Timestamp'),
    properties: makeNameTable(properties),
    nulls: Buffer.from(nulls.join(), 'latin1'),
    nullStarts,
  };
}
