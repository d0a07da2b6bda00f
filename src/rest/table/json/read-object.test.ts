import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { atOnce } from '../../../../test/support/run-steps.ts';
import { JSON_MEMBERS_MAX, JSON_NUMBER_MAX, JSON_SPACE_MAX, JSON_STRING_MAX } from '../../../base/input-limits.ts';
import { StorageError } from '../../../services/common/errors.ts';
import { parseText } from '../../../services/table/entity-rows.ts';
import { type Members, readMembers, readMembersSliced, SLICE_BYTES } from './read-object.ts';

const summary = ({ names, values }: Members) =>
  values.map((value, at) => [
    names.all[at],
    value.kind === 'null' ? undefined : { kind: value.kind, text: parseText(value) },
  ]);
const membersOf = (body: Buffer, onYield?: () => void) =>
  onYield ? atOnce(readMembersSliced(body), onYield) : readMembers(body);
const read = (text: string) => summary(membersOf(Buffer.from(text)));
const codeOf = (body: Buffer): string => {
  try {
    membersOf(body);
    return 'read';
  } catch (error) {
    if (error instanceof StorageError) return error.code;
    throw error;
  }
};

const names = (count: number, end = '') => Array.from({ length: count }, (_, at) => `"a${at}${end}":null`).join(',');

describe('The JSON of a body', () => {
  it('is one object of values, in their order, with numbers as they were written', () => {
    expect(read(' { "b" : 1.0 ,\r\n\t"a":-1e+5,"":true,"\\u0061b":"\\ud83d\\ude00\\n","é":null,"f":false } ')).toEqual([
      ['b', { kind: 'number', text: '1.0' }],
      ['a', { kind: 'number', text: '-1e+5' }],
      ['', { kind: 'boolean', text: 'true' }],
      ['ab', { kind: 'string', text: '😀\n' }],
      ['é', undefined],
      ['f', { kind: 'boolean', text: 'false' }],
    ]);
    expect(read('{}')).toEqual([]);
  });

  it('may begin with a byte order mark', () =>
    expect(read('\ufeff{"a":"b"}')).toEqual([['a', { kind: 'string', text: 'b' }]]));

  it('names nothing twice, however it is spelt', () => {
    expect(codeOf(Buffer.from('{"a":1,"a":1}'))).toBe('DuplicatePropertiesSpecified');
    expect(codeOf(Buffer.from('{"a":null,"\\u0061":1}'))).toBe('DuplicatePropertiesSpecified');
    expect(codeOf(Buffer.from('{"a":1,"A":1}'))).toBe('read');
  });

  it('is read alike, whatever was read before it', () => {
    const name = fc.constantFrom('"a"', '"b"', '"a@odata.type"', '"\\u0061"', '"\\\\n"', '"\\n"', '"\n"', '"é"', '"a');
    const member = fc.tuple(name, fc.constantFrom(':1', ' : "x"', ':null', '')).map((parts) => parts.join(''));
    const body = fc.array(member, { maxLength: 4 }).map((members) => Buffer.from(`{${members.join(',')}}`));
    const tried = (bytes: Buffer) => {
      const code = codeOf(bytes);
      return code === 'read' ? summary(membersOf(bytes)) : code;
    };
    fc.assert(
      fc.property(body, body, (one, other) => {
        tried(Buffer.from('{"unlike":1}'));
        const fresh = tried(other);
        tried(Buffer.from('{"unlike":1}'));
        tried(one);
        expect(tried(other)).toEqual(fresh);
      }),
      { numRuns: 3_000 },
    );
  });

  it.each([
    '',
    ' ',
    '{',
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,',
    '{"a":1,}',
    '{,"a":1}',
    '{"a" 1}',
    '{a:1}',
    "{'a':1}",
    '{"a":1}x',
    '{"a":1}{}',
    '[]',
    '1',
    '"a"',
    'null',
    '{"a":{}}',
    '{"a":[1]}',
    '{"a":01}',
    '{"a":+1}',
    '{"a":.5}',
    '{"a":1.}',
    '{"a":1e}',
    '{"a":0x1}',
    '{"a":NaN}',
    '{"a":Infinity}',
    '{"a":True}',
    '{"a":nul}',
    '{"a":nullx}',
    '{"a":"b}',
    '{"a":"b\\"}',
    '{"a":"\\x41"}',
    '{"a":"\\u12"}',
    '{"a":"a\nb"}',
    '{"a":1}//',
    '\ufeff\ufeff{}',
  ])('is nothing else: %j', (text) => expect(codeOf(Buffer.from(text))).toBe('InvalidInput'));

  it('is UTF-8', () => expect(codeOf(Buffer.from('{"a":"\xff"}', 'latin1'))).toBe('InvalidInput'));

  it('is what JSON.parse takes, where that takes a flat object', () => {
    const scalar = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
    );
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), scalar), fc.nat(2), (object, indent) => {
        const { names, values } = membersOf(Buffer.from(JSON.stringify(object, null, indent)));
        expect([...names.positions]).toEqual(names.all.map((name, at) => [name, at]));
        for (const { kind, json, length } of values) {
          expect(json).toMatch(/^[\x20-\x7f]*$/);
          if (kind === 'string') expect(JSON.parse(json)).toHaveLength(length);
        }
        const read = values.map(({ json }, at) => [names.all[at], JSON.parse(json) ?? undefined]);
        // JSON has no -0.
        expect(read).toEqual(
          Object.entries(object).map(([name, value]) => [name, value === 0 ? 0 : (value ?? undefined)]),
        );
      }),
    );
  });

  it.each([
    ['members', `{${names(JSON_MEMBERS_MAX)}`, ',"one":null', '}', 'TooManyProperties'],
    ['annotations', `{${names(JSON_MEMBERS_MAX, '@odata.type')}`, ',"one":null', '}', 'TooManyProperties'],
    ['plain text', `{"a":"${'a'.repeat(JSON_STRING_MAX - 2)}`, 'a', '"}', 'PropertyValueTooLarge'],
    ['escaped text', `{"a":"${'\\u00e9'.repeat(32 << 10)}`, '\\u00e9', '"}', 'PropertyValueTooLarge'],
    ['quotes in text', `{"a":"${'\\"'.repeat(JSON_STRING_MAX / 2 - 1)}`, '\\"', '"}', 'PropertyValueTooLarge'],
    ['a name', `{"${'a'.repeat(JSON_STRING_MAX - 2)}`, 'a', '":1}', 'PropertyValueTooLarge'],
    ['digits', `{"a":${'1'.repeat(JSON_NUMBER_MAX)}`, '1', '}', 'InvalidInput'],
    ['white space', `{"a":${' '.repeat(JSON_SPACE_MAX - 1)}`, ' ', '1}', 'InvalidInput'],
  ])('has a bound on %s, and nothing after it is read', (_, most, more, end, code) => {
    expect(codeOf(Buffer.from(most + end))).toBe('read');
    expect(codeOf(Buffer.from(`${most}${more}${end}`))).toBe(code);
    expect(codeOf(Buffer.from(`${most}${more}?"?`))).toBe(code);
  });

  it('is read in slices, between which other bodies are read', () => {
    const body = (letter: string) => {
      const value = letter.repeat(5_000);
      return Buffer.from(
        JSON.stringify(Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`${letter}${at}`, value]))),
      );
    };
    const small = read('{"a0":1,"a1":2}');
    let yields = 0;
    const large = membersOf(body('a'), () => {
      yields++;
      expect(read('{"a0":1,"a1":2}')).toEqual(small);
      expect(summary(membersOf(body('b')))).toHaveLength(100);
    });
    expect(yields).toBe(Math.floor(body('a').length / (SLICE_BYTES + 5_000)));
    expect(summary(large)).toEqual(
      Object.entries(JSON.parse(body('a').toString())).map(([name, text]) => [name, { kind: 'string', text }]),
    );
    expect([...large.names.positions.keys()]).toEqual(large.names.all);
  });

  it('is refused cleanly if it is junk, and takes no more time than its length', () => {
    const junk = fc.oneof(
      fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
      fc
        .array(
          fc.constantFrom(
            '{',
            '}',
            '"',
            ':',
            ',',
            '\\',
            'a',
            '1',
            '-',
            '.',
            'e',
            'true',
            'null',
            '[',
            ' ',
            '\\u',
            '"a":',
            '"b@odata.type":',
          ),
          { maxLength: 30 },
        )
        .map((parts) => Buffer.from(parts.join(''))),
    );
    fc.assert(
      fc.property(junk, (body) => {
        expect(['read', 'InvalidInput', 'DuplicatePropertiesSpecified']).toContain(codeOf(body));
        if (codeOf(body) === 'read')
          JSON.parse(
            Buffer.from(body)
              .toString()
              .replace(/^\ufeff/, ''),
          );
      }),
      { numRuns: 3_000 },
    );
    for (const piece of ['{', '[', '"', '\\', '{"a":', '1', ' ', '"a":1,', '\\"']) {
      expect(codeOf(Buffer.from(`{"a":${piece.repeat(300_000)}`))).not.toBe('read');
    }
  });
});
