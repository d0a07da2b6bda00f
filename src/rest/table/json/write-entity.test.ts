import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicalize,
  encodeEntity,
  entityFromRow,
  entityKey,
  propertyName,
  type SentEntity,
  type StoredEntity,
} from '../../../services/table/entity-rows.ts';
import { entityAddress } from '../params.ts';
import { parseSelection } from '../selection.ts';
import { EntityPage } from './entity-page.ts';
import { readEntity } from './read-entity.ts';
import { type AnswerFormat, formatEntity, formatTable, formatTables } from './write-entity.ts';

/** A property as it is sent, and as it comes back: the model, which knows nothing of how entities are stored. */
interface Sample {
  readonly type: string;
  readonly sent: string;
  readonly back: string;
  readonly annotated: boolean;
}

const pad = (n: number, digits: number) => String(n).padStart(digits, '0');
const ascii = (text: string) =>
  JSON.stringify(text).replace(/[^\x20-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

const aString = fc.oneof(fc.string(), fc.string({ unit: 'binary' })).map((text): Sample => {
  return { type: 'Edm.String', sent: JSON.stringify(text), back: ascii(text), annotated: false };
});
const anInt32 = fc.integer().map((n): Sample => {
  return { type: 'Edm.Int32', sent: String(n), back: String(n), annotated: false };
});
const anInt64 = fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n).map((n): Sample => {
  return { type: 'Edm.Int64', sent: `"${n}"`, back: `"${n}"`, annotated: true };
});
const aBoolean = fc.boolean().map((b): Sample => {
  return { type: 'Edm.Boolean', sent: String(b), back: String(b), annotated: false };
});
const aDouble = fc.double().map((n): Sample => {
  const special = !Number.isFinite(n);
  const sent = special ? `"${n}"` : Object.is(n, -0) ? '-0.0' : String(n);
  return { type: 'Edm.Double', sent, back: special ? sent : `=${sent}`, annotated: special };
});
const aGuid = fc.uuid().map((guid): Sample => {
  return { type: 'Edm.Guid', sent: `"${guid.toUpperCase()}"`, back: `"${guid.toLowerCase()}"`, annotated: true };
});
const aBinary = fc.uint8Array().map((bytes): Sample => {
  const text = `"${Buffer.from(bytes).toString('base64')}"`;
  return { type: 'Edm.Binary', sent: text, back: text, annotated: true };
});
const aDateTime = fc
  .tuple(
    fc.date({ min: new Date('1602-01-01'), max: new Date('9999-01-01'), noInvalidDate: true }),
    fc.nat(9_999_999),
    fc.nat(7),
    fc.integer({ min: -14 * 60, max: 14 * 60 }),
  )
  .map(([date, ticks, digits, offset]): Sample => {
    const fraction = pad(ticks, 7).slice(0, digits);
    const local = new Date(date.getTime() + offset * 60_000).toISOString().slice(0, 19);
    const zone = `${offset < 0 ? '-' : '+'}${pad(Math.floor(Math.abs(offset) / 60), 2)}:${pad(Math.abs(offset) % 60, 2)}`;
    let shown = fraction;
    while (shown.endsWith('0')) shown = shown.slice(0, -1);
    const sent = `"${local}${fraction && `.${fraction}`}${offset === 0 ? 'Z' : zone}"`;
    const back = `"${date.toISOString().slice(0, 19)}${shown && `.${shown}`}Z"`;
    return { type: 'Edm.DateTime', sent, back, annotated: true };
  });
const aSample = fc.oneof(aString, anInt32, anInt64, aBoolean, aDouble, aGuid, aBinary, aDateTime);
const aName = fc.oneof(
  fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,8}$/),
  fc.string({ unit: fc.constantFrom('é', '中', 'a', '_', 'ж'), minLength: 1, maxLength: 5 }),
);
const reserved = ['PartitionKey', 'RowKey', 'Timestamp', '__proto__'];
const someSamples = fc
  .uniqueArray(fc.tuple(aName, aSample, fc.boolean()), { maxLength: 12, selector: ([name]) => name })
  .map((list) => list.filter(([name]) => !reserved.includes(name)));
const aKey = fc.oneof(fc.string(), fc.string({ unit: 'binary' }));
const aStamp = fc.bigInt(630_000_000_000_000_000n, 800_000_000_000_000_000n);
const someEntities = fc.array(fc.tuple(aKey, aKey, someSamples, aStamp), { maxLength: 5 });
type Model = readonly [partitionKey: string, rowKey: string, [string, Sample, boolean][], version: bigint];

function sent([partitionKey, rowKey, properties]: Model): string {
  const members = properties.flatMap(([name, { type, sent, annotated }, before]) => {
    const member = `${JSON.stringify(name)}:${sent}`;
    // A Double without a point or an exponent would be an Int32.
    if (!annotated && !(type === 'Edm.Double' && !/[.e]/.test(sent))) return [member];
    const annotation = `${JSON.stringify(`${name}@odata.type`)}:"${type}"`;
    return before ? [annotation, member] : [member, annotation];
  });
  members.splice(members.length >> 1, 0, `"RowKey":${JSON.stringify(rowKey)}`, '"nothing":null');
  return `{${[...members, `"PartitionKey":${JSON.stringify(partitionKey)}`].join(',')}}`;
}

function stored(model: Model): StoredEntity {
  const { partitionKey, rowKey, properties } = readEntity(Buffer.from(sent(model))) as SentEntity;
  const keys = { partitionKey: partitionKey!, rowKey: rowKey! };
  const key = entityKey(1n, 2n, keys.partitionKey, keys.rowKey);
  return entityFromRow({ key, version: model[3], value: encodeEntity(keys, properties) });
}

function timestamp(version: bigint): string {
  const date = new Date(Number((version - 621355968000000000n) / 10_000n));
  let fraction = String(version % 10_000_000n).padStart(7, '0');
  while (fraction.endsWith('0')) fraction = fraction.slice(0, -1);
  return `${date.toISOString().slice(0, 19)}${fraction && `.${fraction}`}Z`;
}

const ENDPOINT = 'http://127.0.0.1:10002/devstoreaccount1';
const base = { account: 'devstoreaccount1', endpoint: ENDPOINT, table: 'people' } as const;

/** Names and texts in order, as an entity is expected in an answer. */
function expected(
  [partitionKey, rowKey, properties, version]: Model,
  { level, select }: Pick<AnswerFormat, 'level'> & { select?: string },
) {
  const lines: [string, string][] = [];
  const encode = (key: string) => encodeURIComponent(key.toWellFormed()).replaceAll("'", "''");
  const address = `people(PartitionKey='${encode(partitionKey)}',RowKey='${encode(rowKey)}')`;
  const etag = JSON.stringify(`W/"datetime'${timestamp(version).replaceAll(':', '%3A')}'"`);
  if (level === 'fullmetadata') {
    lines.push(['odata.type', '"devstoreaccount1.people"'], ['odata.id', `"${ENDPOINT}/${address}"`]);
  }
  if (level !== 'nometadata') lines.push(['odata.etag', etag]);
  if (level === 'fullmetadata') lines.push(['odata.editLink', `"${address}"`]);
  const names = select?.split(',').map((name) => name.trim());
  const wanted = (name: string) => !names || names.includes(name);
  if (wanted('PartitionKey')) lines.push(['PartitionKey', ascii(partitionKey)]);
  if (wanted('RowKey')) lines.push(['RowKey', ascii(rowKey)]);
  if (wanted('Timestamp')) {
    if (level === 'fullmetadata') lines.push(['Timestamp@odata.type', '"Edm.DateTime"']);
    lines.push(['Timestamp', `"${timestamp(version)}"`]);
  }
  for (const name of names ?? properties.map(([name]) => name)) {
    if (reserved.includes(name)) continue;
    const sample = properties.find(([one]) => one === name)?.[1];
    if (sample?.annotated && level !== 'nometadata') lines.push([`${name}@odata.type`, `"${sample.type}"`]);
    lines.push([name, sample?.back ?? 'null']);
  }
  return lines;
}

/** An object's members, from its text: a splitter of its own, good for flat objects. */
function membersIn(text: string): [string, string][] {
  const members: [string, string][] = [];
  let rest = text.slice(1, -1);
  while (rest !== '') {
    const [all, name, value] = /^("(?:[^"\\]|\\.)*"):("(?:[^"\\]|\\.)*"|[^,]+)(?:,|$)/.exec(rest)!;
    members.push([JSON.parse(name!) as string, value!]);
    rest = rest.slice(all.length);
  }
  return members;
}

function expectSame(got: [string, string][], lines: [string, string][]): void {
  expect(got.map(([name]) => name)).toEqual(lines.map(([name]) => name));
  for (const [i, [name, text]] of lines.entries()) {
    // The model leaves the form of a Double to edm.test.ts.
    if (text.startsWith('=')) expect(Number(got[i]![1])).toBe(Number(text.slice(1)));
    else expect([name, got[i]![1]]).toEqual([name, text]);
  }
}

const aLevel = fc.constantFrom('nometadata' as const, 'minimalmetadata' as const, 'fullmetadata' as const);

function entitiesText(entities: readonly StoredEntity[], answer: AnswerFormat): Buffer {
  const page = new EntityPage(answer);
  for (const entity of entities) page.add(entity, Number.POSITIVE_INFINITY);
  return Buffer.concat(page.end());
}

describe('An entity in an answer', () => {
  it('is what was sent, at every level of metadata', () => {
    fc.assert(
      fc.property(someEntities, aLevel, (models, level) => {
        for (const model of models) {
          const text = formatEntity(stored(model), { ...base, level }).toString();
          expect(() => JSON.parse(text)).not.toThrow();
          const metadata: [string, string] = ['odata.metadata', `"${ENDPOINT}/$metadata#people/@Element"`];
          expectSame(membersIn(text), [...(level === 'nometadata' ? [] : [metadata]), ...expected(model, { level })]);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('has with $select the named properties alone, and null for those that it lacks', () => {
    const anExtra = fc.constantFrom('PartitionKey', 'RowKey', 'Timestamp', 'lacking', 'missing');
    fc.assert(
      fc.property(
        fc.tuple(aKey, aKey, someSamples, aStamp),
        aLevel,
        fc.uniqueArray(anExtra),
        fc.nat(3),
        (model, level, extra, step) => {
          const own = model[2]
            .map(([name]) => name)
            .filter((name, i) => i % (step + 1) === 0 && !extra.includes(name as 'lacking'));
          const select = [...own, ...extra].reverse().join(', ');
          if (select === '') return;
          const text = formatEntity(stored(model), { ...base, level, selection: parseSelection(select) }).toString();
          const got = membersIn(text).filter(([name]) => name !== 'odata.metadata');
          expectSame(got, expected(model, { level, select }));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('is in a page what it is alone', () => {
    fc.assert(
      fc.property(someEntities, aLevel, (models, level) => {
        const entities = models.map(stored);
        const page = entitiesText(entities, { ...base, level }).toString();
        const alone = entities.map((entity) =>
          formatEntity(entity, { ...base, level })
            .toString()
            .replace(/"odata\.metadata":"[^"]*",/, ''),
        );
        const metadata = level === 'nometadata' ? '' : `"odata.metadata":"${ENDPOINT}/$metadata#people",`;
        expect(page).toBe(`{${metadata}"value":[${alone.join(',')}]}`);
      }),
    );
  });
});

describe('Answers about tables and entities', () => {
  const model: Model = ["it's", '"b" c@d', [], 636458788749431592n];
  const entity = stored(model);

  it('address an entity by its keys', () =>
    expect(entityAddress('people', entity)).toBe("people(PartitionKey='it''s',RowKey='%22b%22%20c%40d')"));

  it('name the selection in their metadata', () => {
    const text = (select: string) =>
      entitiesText([entity], { ...base, level: 'minimalmetadata', selection: parseSelection(select) })
        .toString()
        .split('"')[3];
    expect(text('age,sex')).toBe(`${ENDPOINT}/$metadata#people&$select=age,sex`);
    expect(text('age, sex')).toBe(`${ENDPOINT}/$metadata#people&$select=age,%20sex`);
    expect(text('')).toBe(`${ENDPOINT}/$metadata#people&$select=`);
  });

  it('are a page in pieces, to which no entity is added that exceeds the room', () => {
    const text = canonicalize({ type: 'Edm.String', value: 'x'.repeat(1_000) });
    const properties = Array.from({ length: 20 }, (_, at) => ({ name: propertyName(`p${at}`), value: text }));
    const { partitionKey, rowKey, version } = entity;
    const large = { partitionKey, rowKey, version, value: encodeEntity(entity, properties) };
    const page = new EntityPage({ ...base, level: 'fullmetadata' });
    const grown = page.add(large, Number.POSITIVE_INFINITY)!;
    for (let at = 1; at < 20; at++) {
      expect(page.add(large, grown)).toBeUndefined();
      expect(page.add(large, grown + 1)).toBe(grown + 1);
    }
    const pieces = page.end();
    expect(pieces.length).toBeGreaterThan(4);
    const { value } = JSON.parse(Buffer.concat(pieces).toString());
    expect(value).toHaveLength(20);
    expect(value[19].p19).toBe('x'.repeat(1_000));
  });

  it('show at most as many selected properties as there can be', () => {
    const names = (count: number) => Array.from({ length: count }, (_, at) => `n${at}`).join(',');
    const text = formatEntity(entity, {
      ...base,
      level: 'nometadata',
      selection: parseSelection(names(255)),
    }).toString();
    expect(Object.keys(JSON.parse(text))).toHaveLength(255);
    expect(() => parseSelection(names(256))).toThrow('at most 255');
  });

  it('show everything for an empty selection, and for *', () => {
    const text = (select?: string) => {
      const selection = select === undefined ? undefined : parseSelection(select);
      return formatEntity(entity, { ...base, level: 'nometadata', selection }).toString();
    };
    expect(text('')).toBe(text());
    expect(text('a,*')).toBe(text());
    expect(text()).toContain('"RowKey":"\\"b\\" c@d","Timestamp":"2017-11-10T02:47:54.9431592Z"}');
  });

  it('have tables at every level', () => {
    const metadata = `"odata.metadata":"${ENDPOINT}/$metadata#Tables`;
    const full = `"odata.type":"devstoreaccount1.Tables","odata.id":"${ENDPOINT}/Tables('people')","odata.editLink":"Tables('people')"`;
    expect(formatTable('people', { ...base, level: 'nometadata' })).toBe('{"TableName":"people"}');
    expect(formatTable('people', { ...base, level: 'minimalmetadata' })).toBe(
      `{${metadata}/@Element","TableName":"people"}`,
    );
    expect(formatTables(['people', 'pets'], { ...base, level: 'minimalmetadata' })).toBe(
      `{${metadata}","value":[{"TableName":"people"},{"TableName":"pets"}]}`,
    );
    expect(formatTables(['people'], { ...base, level: 'fullmetadata' })).toBe(
      `{${metadata}","value":[{${full},"TableName":"people"}]}`,
    );
    expect(formatTables([], { ...base, level: 'nometadata' })).toBe('{"value":[]}');
  });
});
