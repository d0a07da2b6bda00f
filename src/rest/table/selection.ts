/** $select: which properties an answer shows. */
import { SELECT_NAMES_MAX } from '../../base/input-limits.ts';
import { memoize } from '../../base/memoize.ts';
import { jsonString, makeNameTable, type NameTable } from '../../services/table/entity-rows.ts';
import { fail } from './errors.ts';

export interface Selection {
  /** As it was sent, decoded. */
  readonly text: string;
  /** Undefined: everything. */
  readonly names: SelectedNames | undefined;
}

export interface SelectedNames {
  readonly partitionKey: boolean;
  readonly rowKey: boolean;
  readonly timestamp: boolean;
  /** The others, in their order. */
  readonly properties: NameTable;
  /** What stands for each that an entity lacks. */
  readonly nulls: readonly Buffer[];
}

/** Microsoft's reference has a maximum of 255, which an entity has properties. */
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
  // What speaks of the entity is there by the level of metadata, not by choice.
  const properties = [...names].filter((name) => name !== '' && !name.startsWith('odata.') && !SYSTEM.has(name));
  return {
    partitionKey: names.has('PartitionKey'),
    rowKey: names.has('RowKey'),
    timestamp: names.has('Timestamp'),
    properties: makeNameTable(properties),
    nulls: properties.map((name) => Buffer.from(`${jsonString(name)}:null`, 'latin1')),
  };
}
