import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { newFolder } from '../../../test/support/repository-copy.ts';
import { readLokiFile } from './loki-file.ts';

async function readAll(text: string): Promise<[collection: string, document: unknown][]> {
  const file = join(newFolder(), 'db.json');
  writeFileSync(file, text);
  const found: [string, unknown][] = [];
  for await (const { collection, parse } of readLokiFile(file)) found.push([collection, parse()]);
  return found;
}

const collection = (name: string, data: unknown[]) => ({
  ...{
    name,
    data,
    idIndex: [1, 2],
    binaryIndices: { a: { values: [1] } },
    constraints: null,
    transform: 'name',
    x: 'data',
  },
  options: { data: [{ no: 'document' }] },
});
const database = (...collections: object[]) =>
  JSON.stringify({
    filename: '/data/x[1].json',
    collections,
    options: { collections: [{ data: [{}] }] },
    ENV: 'NODEJS',
  });

describe('A database of LokiJS', () => {
  it('has the documents of its collections', async () => {
    const text = database(
      collection('$A$', [{ a: 1 }, { b: { c: ['}', '\\"', ']'] } }]),
      collection('$B$', []),
      collection('C"', [{ d: 2 }]),
    );
    expect(await readAll(text)).toEqual([
      ['$A$', { a: 1 }],
      ['$A$', { b: { c: ['}', '\\"', ']'] } }],
      ['C"', { d: 2 }],
    ]);
  });

  it('is read in pieces as it is read at once, whatever its documents are', async () => {
    const document = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.string(), fc.array(document))), async (collections) => {
        const text = database(...collections.map(([name, data]) => collection(name, data)));
        const expected = collections.flatMap(([name, data]) =>
          data.map((each) => [name, JSON.parse(JSON.stringify(each))]),
        );
        expect(await readAll(text)).toEqual(expected);
      }),
      { numRuns: 50 },
    );
  });

  it('may be longer than the pieces in which it is read, also its documents', async () => {
    const documents = Array.from({ length: 7 }, (_, i) => ({ i, text: 'ü"'.repeat(300_000) }));
    expect(await readAll(database(collection('long', documents)))).toEqual(documents.map((each) => ['long', each]));
  });

  const whole = database(collection('a', [{ x: 1 }]));
  const damaged: [what: string, text: string, fault: string][] = [
    ['cut off in a document', whole.slice(0, whole.indexOf('"x"') + 2), 'it is cut off after'],
    ['cut off after its documents', whole.slice(0, -5), 'it is cut off after'],
    ['empty', '', 'it is not a database of Azurite'],
    ['of another kind', '{"hello":"you"}', 'it is not a database of Azurite'],
    ['full of zeros', '\0'.repeat(100), 'it is not a database of Azurite'],
    ['without a bracket', whole.replace('}],', '}},'), 'has no partner'],
    ['without a colon', whole.replace('"x":', '"x"'), 'is not JSON'],
    ['nested for ever', `{"collections":[{"name":"a","data":[{"a":${'['.repeat(2_000)}`, 'nested too deeply'],
  ];
  it.each(damaged)('that is %s is refused with the file and the reason', async (_, text, fault) => {
    await expect(readAll(text)).rejects.toThrow(/db\.json is damaged: /);
    await expect(readAll(text)).rejects.toThrow(fault);
  });
});
