import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UnknownFormat } from '../../partition/values.ts';
import type { EdmValue } from '../../rules/table/edm.ts';
import {
  canonicalize,
  decodeEntityProperties,
  encodeEntity,
  entitiesIn,
  entityFromRow,
  entityKey,
  mergeEntity,
  propertyName,
  sortByName,
  propertyValue as valueIn,
} from './entity-rows.ts';

const TICKS_1601 = 504911232000000000n;
const TICKS_END = 3155378976000000000n;
const aValue: fc.Arbitrary<EdmValue> = fc.oneof(
  fc.string({ unit: 'binary' }).map((value) => ({ type: 'Edm.String' as const, value })),
  fc.string().map((value) => ({ type: 'Edm.String' as const, value })),
  fc.integer().map((value) => ({ type: 'Edm.Int32' as const, value })),
  fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n).map((value) => ({ type: 'Edm.Int64' as const, value })),
  fc.double().map((value) => ({ type: 'Edm.Double' as const, value })),
  fc.boolean().map((value) => ({ type: 'Edm.Boolean' as const, value })),
  fc.bigInt(TICKS_1601, TICKS_END - 1n).map((value) => ({ type: 'Edm.DateTime' as const, value })),
  fc.uuid().map((value) => ({ type: 'Edm.Guid' as const, value })),
  fc.uint8Array().map((bytes) => ({ type: 'Edm.Binary' as const, value: Buffer.from(bytes) })),
);
const aName = fc.oneof(
  fc.stringMatching(/^[abAB_]{1,3}$/),
  fc.string({ unit: fc.constantFrom('é', 'ж', 'x'), minLength: 1, maxLength: 3 }),
);
interface Sample {
  readonly name: string;
  readonly value: EdmValue;
}
const someProperties = fc.uniqueArray(fc.record({ name: aName, value: aValue }), { selector: ({ name }) => name });
const asStored = (samples: readonly Sample[]) =>
  samples.map(({ name, value }) => ({ name: propertyName(name), value: canonicalize(value) }));
const aKey = fc.oneof(fc.string(), fc.string({ unit: 'binary' }));

function stored(partitionKey: string, rowKey: string, samples: readonly Sample[], version = 7n) {
  const key = entityKey(3n, 4n, partitionKey, rowKey);
  return entityFromRow({ key, version, value: encodeEntity({ partitionKey, rowKey }, asStored(samples)) });
}

describe('A stored entity', () => {
  it('gives back its keys, its version and its properties in their order', () => {
    fc.assert(
      fc.property(aKey, aKey, someProperties, (partitionKey, rowKey, properties) => {
        const entity = stored(partitionKey, rowKey, properties, 99n);
        expect([entity.partitionKey, entity.rowKey, entity.version]).toEqual([partitionKey, rowKey, 99n]);
        expect(decodeEntityProperties(entity)).toEqual(properties);
      }),
    );
  });

  it('gives the value of each property by its name, and of no other name', () => {
    fc.assert(
      fc.property(aKey, aKey, someProperties, fc.array(aName), (partitionKey, rowKey, properties, names) => {
        const entity = stored(partitionKey, rowKey, properties, TICKS_1601);
        const model = new Map(properties.map(({ name, value }) => [name, value]));
        for (const name of [...names, ...model.keys()]) expect(valueIn(entity, name)).toEqual(model.get(name));
        expect(valueIn(entity, 'PartitionKey')).toEqual({ type: 'Edm.String', value: partitionKey });
        expect(valueIn(entity, 'RowKey')).toEqual({ type: 'Edm.String', value: rowKey });
        expect(valueIn(entity, 'Timestamp')).toEqual({ type: 'Edm.DateTime', value: TICKS_1601 });
      }),
    );
  });

  it('decodes no more of a long value than a filter has to compare', () => {
    fc.assert(
      fc.property(aValue, fc.nat(12), (value, lengthMax) => {
        const cut = valueIn(stored('p', 'r', [{ name: 'a', value }]), 'a', lengthMax)!;
        if (value.type === 'Edm.String') expect(cut.value).toBe(value.value.slice(0, lengthMax));
        else if (value.type !== 'Edm.Binary') expect(cut).toEqual(value);
        else {
          const bytes = cut.value as Buffer;
          expect(bytes.length).toBeGreaterThanOrEqual(Math.min(lengthMax, value.value.length));
          expect(bytes.length).toBeLessThan(lengthMax + 3);
          expect(bytes).toEqual(value.value.subarray(0, bytes.length));
        }
      }),
    );
  });

  it('keeps in a merge the properties that are not named, replaces those that are, and has all sorted by name', () => {
    fc.assert(
      fc.property(aKey, aKey, someProperties, someProperties, (partitionKey, rowKey, before, changes) => {
        const merged = mergeEntity(stored(partitionKey, rowKey, before), asStored(changes));
        const model = new Map([...before, ...changes].map((property) => [property.name, property]));
        const names = [...model.keys()].sort();
        const afresh = encodeEntity({ partitionKey, rowKey }, asStored(names.map((name) => model.get(name)!)));
        expect(merged.equals(afresh)).toBe(true);
        expect(sortByName(asStored([...model.values()])).map(({ name }) => name.text)).toEqual(names);
      }),
    );
  });

  it('lies between others by its partition, then by its row, in the order of UTF-16 units', () => {
    const keys = [
      ['', ''],
      ['', 'a'],
      ['a', ''],
      ['a', 'b'],
      ['a b', ''],
      ['aa', 'a'],
      ['\ud83d\ude00', ''],
      ['\uffee', ''],
    ].map(([partitionKey, rowKey]) => entityKey(1n, 2n, partitionKey!, rowKey!));
    expect([...keys].sort()).toEqual(keys);
    const { from, to } = entitiesIn(1n, 2n);
    expect(keys.every((key) => key >= from && key < to)).toBe(true);
    expect(entityKey(1n, 3n, '', '') >= to).toBe(true);
  });

  it('of a later version of the format is not misread', () => {
    const entity = stored('p', 'r', []);
    entity.value[0] = 9;
    expect(() => decodeEntityProperties(entity)).toThrow(UnknownFormat);
    expect(() => valueIn(entity, 'a')).toThrow(UnknownFormat);
  });
});
