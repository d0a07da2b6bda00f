import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatSddl, parseSddl } from './sddl.ts';

const DOMAIN_USER = 'S-1-5-21-1000000001-2000000002-3000000003-1013';

function rewrite(text: string): string | undefined {
  const descriptor = parseSddl(text);
  return descriptor && formatSddl(descriptor);
}

const sid = fc.oneof(
  fc.constantFrom('SY', 'BA', 'WD', 'AU', 'CO', 'BU', 'S-1-0-0'),
  fc
    .array(fc.nat({ max: 0xffff_ffff }), { minLength: 2, maxLength: 15 })
    .map((numbers) => `S-1-5-21-${numbers.slice(1).join('-')}`),
);
const flags = fc.subarray(['OI', 'CI', 'NP', 'IO', 'ID']).map((letters) => letters.join(''));
const rights = fc.oneof(
  fc.constantFrom('FA', 'FR', 'FW', 'FX', 'GA', 'GXGR', 'CCDCLC', 'SDRCWDWO'),
  fc.nat({ max: 0xff }).map((low) => `0x1${low.toString(16).padStart(6, '0')}`),
);
const guid = fc.uuid();
const plainEntry = fc.tuple(fc.constantFrom('A', 'D'), flags, rights, sid).map((parts) => {
  const [type, letters, mask, whom] = parts;
  return `(${type};${letters};${mask};;;${whom})`;
});
const objectEntry = fc
  .tuple(fc.constantFrom('OA', 'OD'), flags, rights, fc.option(guid), fc.option(guid), sid)
  .map(([type, letters, mask, object, inherited, whom]) => {
    return `(${type};${letters};${mask};${object ?? ''};${inherited ?? ''};${whom})`;
  });
const entries = fc.array(fc.oneof(plainEntry, objectEntry)).map((list) => list.join(''));
const listFlags = fc.subarray(['P', 'AR', 'AI']).map((letters) => letters.join(''));
const list = fc.oneof(
  fc.tuple(listFlags, entries).map((parts) => parts.join('')),
  fc.constant('NO_ACCESS_CONTROL'),
);
const auditEntry = fc
  .tuple(fc.constantFrom('SA', 'FA', 'SAFA'), sid)
  .map(([when, whom]) => `(AU;${when};FA;;;${whom})`);

describe('SDDL', () => {
  it('is written as it was read, in the canonical spelling', () => {
    const texts = fc
      .tuple(sid, sid, list, fc.option(fc.array(auditEntry)))
      .map(
        ([owner, group, dacl, audits]) =>
          `O:${owner}G:${group}D:${dacl}${audits === null ? '' : `S:${audits.join('')}`}`,
      );
    fc.assert(fc.property(texts, (text) => rewrite(text) === text));
  });

  it('abbreviates well-known identifiers and sorts rights, as Windows does', () => {
    expect(rewrite('O:S-1-5-32-548G:S-1-5-18D:(A;;RPWPCCDCLCSWRCWDWOGA;;;S-1-0-0)')).toBe(
      'O:AOG:SYD:(A;;CCDCLCSWRPWPRCWDWOGA;;;S-1-0-0)',
    );
    expect(rewrite('g:sy o:ba'.replace(' ', ''))).toBe('O:BAG:SY');
    expect(rewrite('O:SYG:SYD:ai(a;oiciid;0x1f01ff;;;s-1-1-0)(D;;1;;;SY)')).toBe(
      'O:SYG:SYD:AI(A;OICIID;FA;;;WD)(D;;CC;;;SY)',
    );
    expect(rewrite('O:S-1-0x10-1G:S-1-0x123456789ABC-7')).toBe('O:S-1-16-1G:S-1-0x123456789ABC-7');
    expect(rewrite('S:(ML;;NWNR;;;LW)(AU;SAFA;FA;;;WD)')).toBe('S:(ML;;NWNR;;;LW)(AU;SAFA;FA;;;WD)');
    expect(rewrite(`O:${DOMAIN_USER}G:${DOMAIN_USER}D:`)).toBe(`O:${DOMAIN_USER}G:${DOMAIN_USER}D:`);
  });

  it.each([
    ['words', 'everybody'],
    ['a part that is unknown', 'X:SY'],
    ['two owners', 'O:SYO:BA'],
    ['two lists', 'D:D:'],
    ['an identifier of another revision', 'O:S-2-5-18'],
    ['an identifier without a number', 'O:S-1-5'],
    ['a number of more than 32 bits', 'O:S-1-5-4294967296'],
    ['an authority of more than 48 bits', 'O:S-1-0x1000000000000-1'],
    ['16 numbers', `O:S-1-5${'-1'.repeat(16)}`],
    ['an abbreviation of a domain', 'O:DA'],
    ['an unknown type', 'D:(Z;;FA;;;SY)'],
    ['an unknown flag', 'D:(A;XX;FA;;;SY)'],
    ['half a flag', 'D:(A;O;FA;;;SY)'],
    ['an unknown right', 'D:(A;;ZZ;;;SY)'],
    ['a right of more than 32 bits', 'D:(A;;0x100000000;;;SY)'],
    ['five fields', 'D:(A;;FA;;SY)'],
    ['no one', 'D:(A;;FA;;;)'],
    ['an entry that does not end', 'D:(A;;FA;;;SY'],
    ['an object in a plain entry', 'D:(A;;FA;bf967aba-0de6-11d0-a285-00aa003049e2;;SY)'],
    ['an object that is no GUID', 'D:(OA;;FA;bf967aba;;SY)'],
    ['entries in a list that restricts nobody', 'D:NO_ACCESS_CONTROL(A;;FA;;;SY)'],
    ['a condition', 'D:(XA;;FX;;;AU;(@User.Title=="PM"))'],
    ['a condition that denies', 'D:(XD;;FX;;;AU;(Member_of{SID(BA)}))'],
    ['a resource attribute', 'S:(RA;;;;;WD;("Secrecy",TI,0x0,3))'],
    ['something after the end', 'O:SY '],
  ])('refuses %s', (_, text) => {
    expect(parseSddl(text)).toBeUndefined();
  });

  it('never fails on any text', () => {
    const pieces = fc.constantFrom(
      'O:',
      'G:',
      'D:',
      'S:',
      '(',
      ')',
      ';',
      'A',
      'SY',
      'S-1-5-',
      '18',
      'P',
      'AI',
      '0x',
      '-',
    );
    fc.assert(fc.property(fc.array(pieces), (parts) => void parseSddl(parts.join(''))));
    fc.assert(fc.property(fc.string(), (text) => void parseSddl(text)));
  });
});
