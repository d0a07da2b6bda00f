import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatPermission, parsePermission } from './permission.ts';
import { formatSddl, parseSddl } from './sddl.ts';
import { type Ace, decodeAccess, decodeDescriptor, encodeDescriptor } from './security-descriptor.ts';

const SDDL =
  'O:BAG:SYD:PAI(A;OICI;FA;;;SY)(D;;FW;;;AN)(OA;CI;CR;bf967aba-0de6-11d0-a285-00aa003049e2;;AU)S:AI(AU;SAFA;FA;;;WD)';

/** A callback entry, MS-DTYP 2.4.4.17: allowed, with four bytes of application data. */
const conditional: Ace = {
  type: 9,
  flags: 0,
  body: Buffer.concat([
    Buffer.from([1, 0, 0, 0]),
    Buffer.from('0101000000000005120000006172747800', 'hex').subarray(0, 16),
  ]),
};

function encode(text: string): Buffer {
  return encodeDescriptor(parseSddl(text)!)!;
}

describe('A security descriptor', () => {
  it('has the bytes of MS-DTYP', () => {
    const list = '02001c0001000000' + '00031400ff011f00' + '010100000000000512000000';
    const owner = '01020000000000052000000020020000';
    const group = '010100000000000512000000';
    // Revision 1, control SE_SELF_RELATIVE | SE_DACL_PRESENT, then the offsets of owner, group, SACL, DACL.
    const header = '01000480' + '30000000' + '40000000' + '00000000' + '14000000';
    expect(encode('O:BAG:SYD:(A;OICI;FA;;;SY)').toString('hex')).toBe(header + list + owner + group);
  });

  it('survives its binary form', () => {
    for (const text of [SDDL, 'O:SYG:SYD:NO_ACCESS_CONTROL', 'O:SYG:SYD:', 'O:SY', 'D:AR', 'S:PAR']) {
      expect(formatSddl(decodeDescriptor(encode(text))!)).toBe(text);
    }
  });

  it('keeps entries that only the binary form can express', () => {
    const bytes = encodeDescriptor({ ...parseSddl('O:SYG:SY')!, dacl: [conditional] })!;
    const descriptor = decodeDescriptor(bytes)!;
    expect(descriptor.dacl).toEqual([conditional]);
    expect(decodeAccess(conditional)).toBeUndefined();
    expect(formatSddl(descriptor)).toBeUndefined();
    expect(encodeDescriptor(descriptor)).toEqual(bytes);
  });

  it('is not too long for its own length fields', () => {
    const entries = (count: number) => `O:SYG:SYD:${'(A;;FA;;;SY)'.repeat(count)}`;
    expect(encodeDescriptor(parseSddl(entries(3276))!)!.length).toBeGreaterThan(65_000);
    expect(encodeDescriptor(parseSddl(entries(3277))!)).toBeUndefined();
    expect(parseSddl(entries(5000))).toBeUndefined();
  });

  it('is never read from bytes that end early, and never past their end', () => {
    const bytes = encode(SDDL);
    for (let length = 0; length < bytes.length; length++) {
      expect(decodeDescriptor(bytes.subarray(0, length))).toBeUndefined();
    }
    const changed = fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(changed, (changes) => {
        const broken = Buffer.from(bytes);
        for (const [at, value] of changes) broken[at] = value;
        const read = decodeDescriptor(broken);
        if (read !== undefined) expect(decodeDescriptor(encodeDescriptor(read)!)).toEqual(read);
      }),
    );
    fc.assert(fc.property(fc.uint8Array(), (random) => void decodeDescriptor(Buffer.from(random))));
  });
});

describe('A permission', () => {
  it('has an owner, a group and a list', () => {
    for (const text of ['G:SYD:', 'O:SYD:', 'O:SYG:SY', '']) expect(parsePermission(text, 'sddl')).toBeUndefined();
    for (const text of ['O:SY', 'O:SYG:SYS:']) {
      expect(parsePermission(encode(text).toString('base64'), 'binary')).toBeUndefined();
    }
  });

  it('is answered with a list for audits', () => {
    const bytes = encodeDescriptor(parsePermission('O:SYG:SYD:AI(A;;FA;;;SY)', 'sddl')!)!;
    expect(formatPermission(bytes, 'sddl')).toBe('O:SYG:SYD:AI(A;;FA;;;SY)S:NO_ACCESS_CONTROL');
  });

  it('is the same in both formats', () => {
    const bytes = encode(SDDL);
    expect(encodeDescriptor(parsePermission(bytes.toString('base64'), 'binary')!)).toEqual(bytes);
    expect(formatPermission(bytes, 'binary')).toBe(bytes.toString('base64'));
    expect(formatPermission(bytes, 'sddl')).toBe(SDDL);
  });

  it('is base64 in the binary format', () => {
    const text = encode(SDDL).toString('base64');
    for (const broken of ['', text.slice(1), `${text}=`, `${text} `, SDDL]) {
      expect(parsePermission(broken, 'binary')).toBeUndefined();
    }
  });
});
