import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Key } from '../../partition/keys.ts';
import { encodeText } from '../../partition/values.ts';
import { decodeEntry, decodeNode, encodeEntry, encodeNode } from './node-codec.ts';
import type { DirectoryRecord, FileRecord } from './node-rows.ts';

/** As HTTP can carry it: no line feed, no NUL. */
const line = fc.string({ unit: 'binary' }).map((text) => text.replace(/[\n\0]/g, ' '));
const id = fc.bigInt({ min: 1n, max: 2n ** 62n });
const instant = fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n });
const number = fc.nat(2 ** 32 - 1);
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const common = {
  etag: optional(id),
  parent: id,
  name: line,
  attributes: number,
  times: fc.record({ creation: instant, lastWrite: instant, change: instant, access: optional(instant) }),
  permission: line.filter((text) => text !== ''),
  metadata: fc.dictionary(fc.string({ minLength: 1 }), fc.string()),
  born: number,
};
const aDirectory = fc.record({ kind: fc.constant('directory' as const), timesSet: id, ...common });
const aFile = fc.record({
  kind: fc.constant('file' as const),
  ...common,
  length: fc.nat(2 ** 42),
  contentId: optional(line.filter((text) => text !== '')),
  content: fc.record({
    contentType: optional(line),
    contentMd5: optional(line),
    contentEncoding: optional(line),
    contentLanguage: optional(line),
    contentDisposition: optional(line),
    cacheControl: optional(line),
  }),
  lease: optional(fc.record({ id: fc.uuid(), state: fc.constant('leased' as const) })),
  copy: optional(fc.record({ id: fc.uuid(), source: fc.string(), bytes: fc.nat(), completed: id })),
});

const rowWith = (value: Buffer, version = 9n) => ({ key: '' as Key, value, version });

describe('A node', () => {
  it('comes back as it was stored', () => {
    fc.assert(
      fc.property(fc.oneof(aDirectory, aFile), id, id, (record, node, version) => {
        const row = rowWith(encodeNode(record as DirectoryRecord | FileRecord), version);
        const { etag: _, modified, version: shown, id: found, ...rest } = decodeNode(node, row);
        const { etag, ...stored } = record;
        expect(rest).toEqual(stored);
        expect(found).toBe(node);
        expect(shown).toBe(etag ?? version);
        expect(modified).toBe(shown);
      }),
    );
  });

  it('of a folder of format 7 is read: a file with all fields, and a directory', () => {
    const shared = {
      attributes: 32,
      times: ['-5', '6', '7'],
      permission: '1*2',
      name: 'Ä b',
      born: 1,
      metadata: { k: 'v' },
    };
    const file = decodeNode(
      8n,
      rowWith(
        encodeText(
          JSON.stringify({
            ...{
              kind: 'file',
              ...shared,
              parent: '4',
              etag: '3',
              length: 10,
              contentId: '1-2',
              content: { cacheControl: '' },
            },
            lease: { id: 'l', state: 'leased', seconds: 15, until: '99' },
            copy: { id: 'c', source: 's', bytes: 10, completed: '98' },
          }),
        ),
      ),
    );
    const { times: _, ...same } = shared;
    const times = { creation: -5n, lastWrite: 6n, change: 7n };
    expect(file).toEqual({
      ...{
        id: 8n,
        kind: 'file',
        ...same,
        times,
        parent: 4n,
        length: 10,
        contentId: '1-2',
        content: { cacheControl: '' },
      },
      lease: { id: 'l', state: 'leased', seconds: 15, until: 99n },
      copy: { id: 'c', source: 's', bytes: 10, completed: 98n },
      ...{ etag: '0x3', modified: 3n, version: 3n },
    });
    const directory = { kind: 'directory', ...shared, parent: '0', timesSet: '5' };
    expect(decodeNode(8n, rowWith(encodeText(JSON.stringify(directory))))).toEqual({
      ...{
        id: 8n,
        kind: 'directory',
        ...same,
        times,
        parent: 0n,
        timesSet: 5n,
        etag: '0x9',
        modified: 9n,
        version: 9n,
      },
    });
  });

  it('of another format, or without its end, is damaged', () => {
    const [record] = fc.sample(aFile, { numRuns: 1, seed: 7 });
    const value = encodeNode(record as FileRecord);
    for (const [at, byte] of [
      [0, 2],
      [1, 3],
    ] as const) {
      const damaged = Buffer.from(value);
      damaged[at] = byte;
      expect(() => decodeNode(1n, rowWith(damaged))).toThrow('which this version does not know');
    }
    expect(() => decodeNode(1n, rowWith(value.subarray(0, -1)))).toThrow('without its end');
  });

  it('is not stored where a field has two lines, which would shift all that follow', () => {
    const [record] = fc.sample(aFile, { numRuns: 1, seed: 7 });
    expect(() => encodeNode({ ...record, name: 'a\nb' } as FileRecord)).toThrow('two lines');
  });
});

describe('An entry', () => {
  it('comes back as it was stored', () => {
    const anEntry = fc.record({ node: id, name: line, kind: fc.constantFrom('file', 'directory'), born: number });
    fc.assert(
      fc.property(anEntry, (entry) => {
        expect(decodeEntry(rowWith(encodeEntry(entry)))).toEqual(entry);
      }),
    );
  });

  it('of a folder of format 7 is read', () => {
    const stored = encodeText(JSON.stringify({ node: '12', name: 'Ä', kind: 'directory', born: 1 }));
    expect(decodeEntry(rowWith(stored))).toEqual({ node: 12n, name: 'Ä', kind: 'directory', born: 1 });
  });
});
