/**
 * Random entities and filters of the Table service, and an evaluator of filters, written for simplicity and without the
 * server's code: values are kept as the text that stands for them.
 */
import fc from 'fast-check';

export interface Value {
  readonly type: 'String' | 'Int32' | 'Int64' | 'Double' | 'Boolean' | 'DateTime' | 'Guid' | 'Binary';
  /** Numbers in decimal (also NaN, INF, -INF), dates as 2024-02-29T12:00:00.0000000Z, GUIDs and hex in lower case. */
  readonly text: string;
}

export type Entity = Readonly<Record<string, Value>>;

export type Operator = 'eq' | 'ne' | 'lt' | 'le' | 'gt' | 'ge';

export type Condition =
  | { readonly is: 'constant'; readonly value: boolean }
  | { readonly is: 'property'; readonly name: string }
  | {
      readonly is: 'comparison';
      readonly name: string;
      readonly operator: Operator;
      readonly value: Value;
      /** The constant stands on the left, the operator is mirrored. */
      readonly mirrored: boolean;
      /** One of several ways to write the constant. */
      readonly form: number;
    }
  | { readonly is: 'not'; readonly part: Condition }
  | { readonly is: 'and' | 'or'; readonly parts: readonly Condition[] }
  /** Parentheses that nothing asks for. */
  | { readonly is: 'wrapped'; readonly part: Condition };

const OPERATORS: readonly Operator[] = ['eq', 'ne', 'lt', 'le', 'gt', 'ge'];
export const NAMES = ['PartitionKey', 'RowKey', 'Timestamp', 'a', 'b', 'c'];

const valuesOf = (type: Value['type'], ...texts: string[]) =>
  fc.constantFrom(...texts).map((text): Value => ({ type, text }));

/** Few of each type, so that values meet their like, and those that arithmetic gets wrong. */
export const anyValue: fc.Arbitrary<Value> = fc.oneof(
  valuesOf('String', '', 'a', 'A', 'ab', "it's", "''", 'ä', '\uffff', '\u{1F600}', 'true', '5', ' and '),
  valuesOf('Int32', '-2147483648', '-1', '0', '1', '5', '2147483647'),
  valuesOf(
    'Int64',
    '-9223372036854775808',
    '-1',
    '0',
    '5',
    '9007199254740992',
    '9007199254740993',
    '9223372036854775807',
  ),
  valuesOf(
    'Double',
    'NaN',
    'INF',
    '-INF',
    '-1.5',
    '0.0',
    '0.5',
    '5.0',
    '9007199254740992.0',
    '9.223372036854776e18',
    '5e-324',
  ),
  valuesOf('Boolean', 'true', 'false'),
  valuesOf('DateTime', '1601-01-01T00:00:00.0000000Z', '2024-02-29T12:00:00.0000000Z', '2024-02-29T12:00:00.0000001Z'),
  valuesOf('DateTime', '2024-02-29T11:59:59.9999999Z', '9999-12-31T23:59:59.9999999Z'),
  valuesOf('Guid', '00000000-0000-0000-0000-000000000000', '6bc44494-d2b7-4738-8f87-acd692226a5c'),
  valuesOf('Guid', '6bc44494-d2b7-4738-8f87-acd692226a5d', 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
  valuesOf('Binary', '', '00', '0000', '7f', '80', 'ff', '00ff'),
);
const anyKey = fc.constantFrom('', 'a', 'ab', 'b', '\u{1F600}').map((text): Value => ({ type: 'String', text }));

export const anyEntity: fc.Arbitrary<Entity> = fc.record(
  {
    PartitionKey: anyKey,
    RowKey: anyKey,
    Timestamp: anyValue.filter((value) => value.type === 'DateTime'),
    a: anyValue,
    b: anyValue,
    c: valuesOf('Boolean', 'true', 'false'),
  },
  { requiredKeys: ['PartitionKey', 'RowKey', 'Timestamp'] },
);

export const anyCondition: fc.Arbitrary<Condition> = fc
  .letrec<{ condition: Condition }>((tie) => ({
    condition: fc.oneof(
      { maxDepth: 4, depthSize: 'medium' },
      {
        weight: 6,
        arbitrary: fc.record({
          is: fc.constant('comparison' as const),
          name: fc.constantFrom(...NAMES),
          operator: fc.constantFrom(...OPERATORS),
          value: fc.oneof(anyValue, anyKey),
          mirrored: fc.boolean(),
          form: fc.nat(3),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ is: fc.constant('property' as const), name: fc.constantFrom('a', 'b', 'c') }),
      },
      { weight: 1, arbitrary: fc.record({ is: fc.constant('constant' as const), value: fc.boolean() }) },
      { weight: 2, arbitrary: fc.record({ is: fc.constant('not' as const), part: tie('condition') }) },
      { weight: 1, arbitrary: fc.record({ is: fc.constant('wrapped' as const), part: tie('condition') }) },
      {
        weight: 4,
        arbitrary: fc.record({
          is: fc.constantFrom('and' as const, 'or' as const),
          parts: fc.array(tie('condition'), { minLength: 2, maxLength: 3 }),
        }),
      },
    ),
  }))
  .condition.filter((condition) => comparisonsOf(condition) <= 15);

function comparisonsOf(condition: Condition): number {
  if ('parts' in condition) return condition.parts.reduce((sum, part) => sum + comparisonsOf(part), 0);
  if ('part' in condition) return comparisonsOf(condition.part);
  return condition.is === 'constant' ? 0 : 1;
}

export function isMet(condition: Condition, entity: Entity): boolean {
  switch (condition.is) {
    case 'constant':
      return condition.value;
    case 'property':
      return entity[condition.name]?.type === 'Boolean' && entity[condition.name]?.text === 'true';
    case 'comparison': {
      const value = entity[condition.name];
      return value !== undefined && compares(value, condition.operator, condition.value);
    }
    case 'not':
      return !isMet(condition.part, entity);
    case 'wrapped':
      return isMet(condition.part, entity);
    case 'and':
      return condition.parts.every((part) => isMet(part, entity));
    case 'or':
      return condition.parts.some((part) => isMet(part, entity));
  }
}

const NUMBERS = ['Int32', 'Int64', 'Double'];

function compares(value: Value, operator: Operator, constant: Value): boolean {
  const bothNumbers = NUMBERS.includes(value.type) && NUMBERS.includes(constant.type);
  if (bothNumbers && (constant.type !== 'Int64' || value.type === 'Int64')) {
    if (value.text === 'NaN' || constant.text === 'NaN') return operator === 'ne';
    return holds(operator, scaled(value.text), scaled(constant.text));
  }
  if (value.type === constant.type) return holds(operator, value.text, constant.text);
  if (constant.type === 'String') return ['ne', 'lt', 'le'].includes(operator);
  return operator === 'ne';
}

function holds<Kind extends string | bigint>(operator: Operator, left: Kind, right: Kind): boolean {
  if (left < right) return ['ne', 'lt', 'le'].includes(operator);
  if (left > right) return ['ne', 'gt', 'ge'].includes(operator);
  return ['eq', 'le', 'ge'].includes(operator);
}

/** Every finite double is a whole number of 2^-1074. */
function scaled(text: string): bigint {
  const far = 1n << 3000n;
  if (text.endsWith('INF')) return text === 'INF' ? far : -far;
  if (/^-?\d+$/.test(text)) return BigInt(text) << 1074n;
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, Number(text));
  const exponent = Number((bits.getBigUint64(0) >> 52n) & 0x7ffn);
  const fraction = bits.getBigUint64(0) & 0xfffffffffffffn;
  const size = exponent === 0 ? fraction : (fraction | (1n << 52n)) << BigInt(exponent - 1);
  return Number(text) < 0 ? -size : size;
}

const MIRRORED = { eq: 'eq', ne: 'ne', lt: 'gt', le: 'ge', gt: 'lt', ge: 'le' } as const;
const BINDING = { or: 0, and: 1, not: 2 } as const;

/** As it stands in $filter, before it is encoded for a URL. */
export function filterText(condition: Condition, around = 0): string {
  switch (condition.is) {
    case 'constant':
      return String(condition.value);
    case 'property':
      return condition.name;
    case 'comparison': {
      const { name, operator, value, mirrored, form } = condition;
      return mirrored
        ? `${constantText(value, form)} ${MIRRORED[operator]} ${name}`
        : `${name} ${operator} ${constantText(value, form)}`;
    }
    case 'wrapped':
      return `( ${filterText(condition.part)})`;
    default: {
      const binding = BINDING[condition.is];
      const text =
        condition.is === 'not'
          ? `not ${filterText(condition.part, binding)}`
          : condition.parts.map((part) => filterText(part, binding + 1)).join(` ${condition.is} `);
      return binding < around ? `(${text})` : text;
    }
  }
}

function constantText({ type, text }: Value, form: number): string {
  switch (type) {
    case 'String':
      return `'${text.replaceAll("'", "''")}'`;
    case 'Int64':
      return `${text}L`;
    case 'DateTime':
      return `datetime'${form % 2 === 0 ? text : text.replace(/\.?0+Z$/, 'Z')}'`;
    case 'Guid':
      return `guid'${form % 2 === 0 ? text : text.toUpperCase()}'`;
    case 'Binary':
      return `${form % 2 === 0 ? 'X' : 'binary'}'${form > 1 ? text : text.toUpperCase()}'`;
    default:
      return text;
  }
}
