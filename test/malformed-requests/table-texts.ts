/** Generators of valid filters, entities and batches of the Table service, and mutations of their text. */
import type { randomOf } from '../support/random.mjs';

type Random = ReturnType<typeof randomOf>;

const LITERALS = [
  "'a'",
  "'it''s'",
  "''",
  '5',
  '-1',
  '5L',
  '0.5',
  '1e3',
  'NaN',
  'true',
  'false',
  "datetime'2024-02-29T12:00:00Z'",
  "guid'6bc44494-d2b7-4738-8f87-acd692226a5c'",
  "X'00ff'",
  "binary'0a'",
];
const PROPERTIES = ['PartitionKey', 'RowKey', 'Timestamp', 'text', 'count', 'isOld', 'unknown'];

export function filterText(random: Random, depth = 3): string {
  const lot = depth === 0 ? 0 : random.below(7);
  const inner = () => filterText(random, depth - 1);
  if (lot === 1) return `(${inner()})`;
  if (lot === 2) return `not (${inner()})`;
  if (lot === 3 || lot === 4) return `${inner()} ${random.oneOf(['and', 'or'])} ${inner()}`;
  const operator = random.oneOf(['eq', 'ne', 'lt', 'le', 'gt', 'ge']);
  const sides = [random.oneOf(PROPERTIES), random.oneOf(LITERALS)];
  return (random.chance(0.2) ? sides.reverse() : sides).join(` ${operator} `);
}

const MEMBERS = [
  '"text":"some \\u00e9 \\"text\\" \u{1F600}"',
  '"count":5',
  '"least":-2147483648',
  '"ratio":1.5e3',
  '"isOld":true',
  '"nothing":null',
  '"large@odata.type":"Edm.Int64","large":"9007199254740993"',
  '"day":"2024-02-29T12:00:00.1234567Z","day@odata.type":"Edm.DateTime"',
  '"id@odata.type":"Edm.Guid","id":"6bc44494-d2b7-4738-8f87-acd692226a5c"',
  '"bytes@odata.type":"Edm.Binary","bytes":"AP8="',
  '"odd@odata.type":"Edm.Double","odd":"NaN"',
  '"odata.etag":"W/\\"x\\""',
];

export function entityText(random: Random, rowKey = `r${random.below(30)}`): string {
  const members = MEMBERS.filter(() => random.chance(0.4));
  return `{${[`"PartitionKey":"p","RowKey":"${rowKey}"`, ...members].join(',')}}`;
}

export function batchText(random: Random, table: string): string {
  const end = random.chance(0.3) ? '\n' : '\r\n';
  const first = random.below(30);
  let set = '';
  for (let at = 0; at < 1 + random.below(5); at++)
    set += `--set${end}${partText(random, table, `r${first + at}`, end)}`;
  if (random.chance(0.1)) return `--batch${end}${queryText(random, table, end)}--batch--${end}`;
  return `--batch${end}Content-Type: multipart/mixed; boundary=set${end}${end}${set}--set--${end}--batch--${end}`;
}

function queryText(random: Random, table: string, end: string): string {
  const path = `/${table}()?$filter=${encodeURIComponent(filterText(random))}`;
  const head = `Content-Type: application/http${end}Content-Transfer-Encoding: binary${end}${end}`;
  return `${head}GET ${path} HTTP/1.1${end}Accept: application/json${end}${end}`;
}

function partText(random: Random, table: string, rowKey: string, end: string): string {
  const path = `/devstoreaccount1/${table}(PartitionKey='p',RowKey='${rowKey}')`;
  const [method, target, more, body] = random.oneOf([
    ['POST', `/${table}`, '', entityText(random, rowKey)],
    ['PUT', path, '', entityText(random, rowKey)],
    ['PATCH', `http://127.0.0.1${path}`, '', entityText(random, rowKey)],
    ['MERGE', path, '', entityText(random, rowKey)],
    ['PUT', path, `If-Match: *${end}`, entityText(random, rowKey)],
    ['DELETE', path, `If-Match: *${end}`, ''],
  ] as const);
  const head = `Content-Type: application/http${end}Content-Transfer-Encoding: binary${end}Content-ID: ${rowKey}${end}${end}`;
  const headers = `Content-Type: application/json${end}Prefer: return-no-content${end}${more}`;
  return `${head}${method} ${target} HTTP/1.1${end}${headers}${end}${body}${end}`;
}

const ODD = [
  ...[
    '',
    '\0',
    '\n',
    '\r\n',
    '\r\n\r\n',
    '"',
    "'",
    "''",
    '\\',
    '\\u',
    '\\ud800',
    '\\u0000',
    '{',
    '}',
    '[',
    ']',
    '(',
    ')',
    ',',
  ],
  ...[
    ':',
    '--',
    '--set',
    '--set--\r\n',
    '--batch',
    '--batch--\r\n',
    'HTTP/1.1',
    'Content-Type: ',
    'If-Match: x\r\n',
    ';',
    '=',
    '%',
  ],
  ...[
    '%00',
    '%27',
    '1e999',
    '-0',
    '-',
    '.',
    '99999999999999999999',
    'null',
    'true',
    '__proto__',
    '@odata.type',
    'Edm.Int64',
  ],
  ...[
    ' and ',
    ' or ',
    'not ',
    ' eq ',
    'datetime',
    "X'0",
    "guid'",
    'L',
    '/*',
    '$',
    'GET ',
    '\t',
    ' ',
    '\ufeff',
    '\u2028',
  ],
  ...['('.repeat(300), '['.repeat(300), '{"a":'.repeat(300), 'not '.repeat(300), 'a'.repeat(3_000), '\xff'],
].map((text) => (text === '\xff' ? Buffer.of(0xff, 0xfe) : Buffer.from(text)));

/** @param another one like it, to take from */
export function mutated(random: Random, bytes: Buffer, another: () => Buffer): Buffer<ArrayBuffer> {
  const at = random.below(bytes.length + 1);
  const to = Math.min(bytes.length, at + 1 + random.below(random.chance(0.5) ? 4 : 60));
  const [before, taken, behind] = [bytes.subarray(0, at), bytes.subarray(at, to), bytes.subarray(to)];
  const flipped = Buffer.from(taken);
  if (flipped.length > 0) flipped[0] = flipped[0]! ^ (1 << random.below(8));
  const other = another();
  const from = random.below(other.length);
  return random.oneOf([
    () => Buffer.concat([before, flipped, behind]),
    () => Buffer.concat([before, behind]),
    () => Buffer.concat([before, taken, taken, behind]),
    () => Buffer.concat([before, random.oneOf(ODD), taken, behind]),
    () => Buffer.concat([before, random.oneOf(ODD), behind]),
    () => Buffer.concat([before]),
    () => Buffer.concat([before, other.subarray(from, from + random.below(200)), behind]),
    () => Buffer.concat([before, other.subarray(from)]),
  ])();
}
