import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Key } from '../../partition/keys.ts';
import { encodeText } from '../../partition/values.ts';
import { decodeBlobRecord, encodeBlobRecord } from './blob-record.ts';
import type { BlobRecord } from './rows.ts';

/** As HTTP can carry it: no line feed, no NUL. */
const line = fc.string({ unit: 'binary' }).map((text) => text.replace(/[\n\0]/g, ' '));
const instant = fc.bigInt({ min: 1n, max: 2n ** 62n });
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const aRecord = fc.record({
  length: fc.nat(),
  created: instant,
  crc64: optional(line),
  contentId: optional(line),
  content: fc.record({
    contentType: optional(line),
    contentMd5: optional(line),
    contentEncoding: optional(line),
    contentLanguage: optional(line),
    contentDisposition: optional(line),
    cacheControl: optional(line),
  }),
  metadata: fc.dictionary(fc.string({ minLength: 1 }), fc.string()),
  lease: optional(
    fc.record({ id: fc.uuid(), state: fc.constant('leased' as const), seconds: fc.nat(60), until: instant }),
  ),
  copy: optional(fc.record({ id: fc.uuid(), source: fc.string(), completed: instant })),
  tags: fc.array(fc.tuple(fc.string(), fc.string())),
  etag: optional(instant),
  tier: optional(
    fc.record({
      tier: fc.constantFrom('Hot', 'Cool', 'Cold', 'Archive'),
      changed: instant,
      rehydration: optional(
        fc.record({
          to: fc.constantFrom('Hot', 'Cool', 'Cold'),
          due: instant,
          priority: fc.constantFrom('Standard', 'High'),
        }),
      ),
    }),
  ),
});

describe('A blob record', () => {
  it('comes back as it was stored', () => {
    fc.assert(
      fc.property(aRecord, instant, (record, version) => {
        const found = decodeBlobRecord({
          key: '' as Key,
          value: encodeBlobRecord(record as unknown as BlobRecord),
          version,
        });
        const { etag: _, modified, version: shown, ...rest } = found;
        const { etag, ...stored } = record;
        expect(rest).toEqual(stored);
        expect(shown).toBe(etag ?? version);
        expect(modified).toBe(shown);
      }),
    );
  });

  it('of an earlier version has no tier, as one whose tier was never set', () => {
    const decode = (text: string) => decodeBlobRecord({ key: '' as Key, value: encodeText(text), version: 9n });
    for (const text of ['block\n0\n1\n', `block\n0\n1\n${'\n'.repeat(8)}7\n{"a":"b"}\n`]) {
      expect(decode(text).tier).toBeUndefined();
    }
    const record = { length: 0, created: 1n, content: {}, metadata: {} };
    expect(encodeBlobRecord(record)).toEqual(encodeText('block\n0\n1\n'));
  });

  it('with a tier or a rehydration that does not exist is damaged', () => {
    const record = { length: 0, created: 1n, content: {}, metadata: {}, tier: { tier: 'Archive', changed: 1n } };
    const decode = (changes: object) => {
      const value = encodeBlobRecord({ ...record, ...changes } as unknown as BlobRecord);
      return decodeBlobRecord({ key: '' as Key, value, version: 9n });
    };
    expect(decode({}).tier).toEqual(record.tier);
    expect(() => decode({ tier: { tier: 'Warm', changed: 1n } })).toThrow('a tier that does not exist');
    for (const wrong of [{ to: 'Archive' }, { to: 'Warm' }, { priority: 'Low' }]) {
      const rehydration = { to: 'Hot', due: 1n, priority: 'High', ...wrong };
      const tier = { ...record.tier, rehydration };
      expect(() => decode({ tier })).toThrow('a rehydration that does not exist');
    }
  });

  it('has no tags if it was stored before there were any', () => {
    const record = { length: 0, created: 1n, content: {}, metadata: {} };
    const value = encodeBlobRecord(record);
    expect(value).toEqual(encodeBlobRecord({ ...record, tags: [] }));
    expect(decodeBlobRecord({ key: '' as Key, value, version: 1n }).tags).toEqual([]);
  });

  it('is not stored where a field has two lines, which would shift all that follow', () => {
    const record = { length: 0, created: 1n, content: { contentType: 'a\nb' }, metadata: {} };
    expect(() => encodeBlobRecord(record)).toThrow('two lines');
  });
});
