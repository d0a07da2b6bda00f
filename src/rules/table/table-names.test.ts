import { describe, expect, it } from 'vitest';
import { foldTableName, tableNameFault } from '../names.ts';

describe('The name of a table', () => {
  it.each(['abc', 'Customers2', 'A'.repeat(63), 'table'])('may be %s', (name) => {
    expect(tableNameFault(name)).toBeUndefined();
  });

  it.each(['', 'aa', '1', 'a'.repeat(64), '_'.repeat(64)])('has 3 to 63 characters, unlike %j', (name) => {
    expect(tableNameFault(name)).toBe('NameOutOfRange');
  });

  it.each(['1table', 'my_table', 'my-table', '$MetricsHour', 'tést', 'a b', '啊齄丂', 'abc\n'])(
    'begins with a letter and has letters and digits only, unlike %j',
    (name) => {
      expect(tableNameFault(name)).toBe('InvalidResourceName');
    },
  );

  it.each(['tables', 'Tables', 'TABLES'])('is not %s, which is where tables are listed', (name) => {
    expect(tableNameFault(name)).toBe('InvalidInput');
  });

  it('is the same in any case', () => {
    expect(foldTableName('CustoMers')).toBe(foldTableName('cUSTOMERS'));
  });
});
