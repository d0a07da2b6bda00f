import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EdmValue } from '../../src/rules/table/edm.ts';
import { compileFilter, type KeyBounds, keyRangesFrom, parseFilter } from '../../src/rules/table/filter.ts';
import { anyCondition, anyEntity, type Entity, filterText, isMet, type Value } from './naive-filter.ts';

describe('What a filter of a query finds', () => {
  it('means what the naive evaluator computes, for any entity', () => {
    let met = 0;
    let runs = 0;
    fc.assert(
      fc.property(anyCondition, fc.array(anyEntity, { minLength: 1, maxLength: 8 }), (condition, entities) => {
        const text = filterText(condition);
        const test = compileFilter(parseFilter(text));
        const expected = entities.filter((entity) => isMet(condition, entity));
        runs += entities.length;
        met += expected.length;
        expect(
          entities.filter((entity) => test(propertiesOf(entity))),
          text,
        ).toEqual(expected);
      }),
      { numRuns: 3_000 },
    );
    // Neither answer may be rare, or the test proves little.
    expect(met).toBeGreaterThan(runs * 0.2);
    expect(met).toBeLessThan(runs * 0.8);
  });

  it('lies in its key ranges', () => {
    fc.assert(
      fc.property(anyCondition, fc.array(anyEntity, { minLength: 1, maxLength: 8 }), (condition, entities) => {
        const ranges = keyRangesFrom(parseFilter(filterText(condition)));
        for (const entity of entities.filter((one) => isMet(condition, one))) {
          const at = (name: string) => entity[name]?.text as string;
          const around = ranges.filter(
            ({ partition, row }) => isWithin(partition, at('PartitionKey')) && isWithin(row, at('RowKey')),
          );
          expect(around).toHaveLength(1);
        }
      }),
      { numRuns: 3_000 },
    );
  });
});

function isWithin({ from, fromExcluded, to, toExcluded }: KeyBounds, key: string): boolean {
  const isAbove = from === undefined || (fromExcluded ? from < key : from <= key);
  return isAbove && (to === undefined || (toExcluded ? key < to : key <= to));
}

function propertiesOf(entity: Entity): (name: string) => EdmValue | undefined {
  return (name) => {
    const value = entity[name];
    return value && edmValue(value);
  };
}

function edmValue({ type, text }: Value): EdmValue {
  switch (type) {
    case 'Int32':
      return { type: 'Edm.Int32', value: Number(text) };
    case 'Int64':
      return { type: 'Edm.Int64', value: BigInt(text) };
    case 'Double':
      return { type: 'Edm.Double', value: Number(text.replace('INF', 'Infinity')) };
    case 'Boolean':
      return { type: 'Edm.Boolean', value: text === 'true' };
    case 'DateTime': {
      const unix = BigInt(Date.parse(`${text.slice(0, 19)}Z`)) * 10_000n;
      return { type: 'Edm.DateTime', value: 621_355_968_000_000_000n + unix + BigInt(text.slice(20, 27)) };
    }
    case 'Binary':
      return { type: 'Edm.Binary', value: Buffer.from(text, 'hex') };
    default:
      return { type: `Edm.${type}`, value: text };
  }
}
