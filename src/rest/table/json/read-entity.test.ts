import { describe, expect, it } from 'vitest';
import { StorageError } from '../../../services/common/errors.ts';
import type { SentEntity } from '../../../services/table/entity-rows.ts';
import { readEntity, readTableName } from './read-entity.ts';

/** None of these bodies is long enough for more than one slice. */
const read = (text: string) => {
  const { properties, ...keys } = readEntity(Buffer.from(text)) as SentEntity;
  return { ...keys, properties: properties.map(({ name, value }) => ({ name: name.text, value })) };
};
const codeOf = (action: () => unknown): string => {
  try {
    action();
    return 'read';
  } catch (error) {
    if (error instanceof StorageError) return `${error.code}: ${error.message}`;
    throw error;
  }
};
const INVALID = 'InvalidInput: An error occurred while processing this request.';

describe('The entity in a body', () => {
  it('has keys, and properties whose types are annotated before or after them, or follow from the JSON', () => {
    const text =
      '{"odata.etag":"W/\\"x\\"","PartitionKey":"p","PartitionKey@odata.type":"Edm.String","a@odata.type":"Edm.Int64","a":"1","b":1.0,"RowKey":"","c":"AAE=","c@odata.type":"Edm.Binary"}';
    expect(read(text)).toEqual({
      partitionKey: 'p',
      rowKey: '',
      properties: [
        { name: 'a', value: { type: 'Edm.Int64', text: '"1"', size: 8 } },
        { name: 'b', value: { type: 'Edm.Double', text: '1.0', size: 8 } },
        { name: 'c', value: { type: 'Edm.Binary', text: '"AAE="', size: 6 } },
      ],
    });
  });

  it('has no nulls, whatever their type; keys may be absent or null', () => {
    const text = '{"PartitionKey":null,"a":null,"b":null,"b@odata.type":"Edm.Int64","c@odata.type":null,"c":1}';
    expect(read(text)).toEqual({
      partitionKey: undefined,
      rowKey: undefined,
      properties: [{ name: 'c', value: { type: 'Edm.Int32', text: '1', size: 4 } }],
    });
  });

  it('has no Timestamp of the client, but may have a timestamp', () => {
    const text =
      '{"Timestamp":"never","Timestamp@odata.type":"Edm.DateTime","timestamp":"1999-09-09T09:09:00Z","timestamp@odata.type":"Edm.DateTime"}';
    expect(read(text).properties.map(({ name }) => name)).toEqual(['timestamp']);
  });

  it.each([
    '{"a":"not a bool","a@odata.type":"Edm.Boolean"}',
    '{"a":"abc","a@odata.type":"Edm.Int64"}',
    '{"a":"x","a@odata.type":"Edm.Unknown"}',
    '{"a":"x","a@odata.type":1}',
    '{"a@odata.type":"Edm.Int64"}',
    '{"PartitionKey":1}',
    '{"PartitionKey":"c9da6455-213d-42c9-9a79-3e9149a57833","PartitionKey@odata.type":"Edm.Guid"}',
    '{"a":{"b":1}}',
  ])('is invalid input where a value is not what it is said to be: %s', (text) =>
    expect(codeOf(() => read(text))).toBe(INVALID),
  );

  it('has no dates before 1601', () =>
    expect(codeOf(() => read('{"a":"1600-01-01T00:00:00Z","a@odata.type":"Edm.DateTime"}'))).toMatch(
      /^OutOfRangeInput/,
    ));

  it('has no property twice, nor an annotation', () => {
    expect(codeOf(() => read('{"a":1,"a":2}'))).toMatch(/^DuplicatePropertiesSpecified/);
    expect(codeOf(() => read('{"a":1,"a@odata.type":"Edm.Int32","a@odata.type":"Edm.Int32"}'))).toMatch(
      /^DuplicatePropertiesSpecified/,
    );
  });
});

describe('The name of a table in a body', () => {
  it('is its TableName', () => {
    expect(readTableName(Buffer.from('{"odata.type":"x","TableName":"mytable"}'))).toBe('mytable');
    expect(codeOf(() => readTableName(Buffer.from('{}')))).toMatch(/^PropertiesNeedValue/);
    expect(codeOf(() => readTableName(Buffer.from('{"TableName":1}')))).toBe(INVALID);
    expect(codeOf(() => readTableName(Buffer.from('{"TableName"')))).toBe(INVALID);
  });
});
