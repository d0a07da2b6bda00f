/** The messages of NTLM (MS-NLMP 2.2.1), and the pairs that they carry (2.2.2.1). */
import { Reader, WireError } from '../wire/reader.ts';
import { bytes, type Of, padding, record, tailOf, u32, utf16 } from '../wire/struct.ts';
import { Writer } from '../wire/writer.ts';

export const NTLM_SIGNATURE = Buffer.from('NTLMSSP\0', 'latin1');

export const NTLM_FLAG = {
  unicode: 0x1,
  requestTarget: 0x4,
  sign: 0x10,
  seal: 0x20,
  ntlm: 0x200,
  anonymous: 0x800,
  alwaysSign: 0x8000,
  targetTypeServer: 0x2_0000,
  extendedSessionSecurity: 0x8_0000,
  targetInfo: 0x80_0000,
  version: 0x200_0000,
  key128: 0x2000_0000,
  keyExchange: 0x4000_0000,
  key56: 0x8000_0000,
} as const;

/** Length, its maximum, and the offset from the beginning of the message. */
const payload = (align = 1) => tailOf({ length: 2, gap: 2, offset: 4, lengthFirst: true, align });

const messageHead = { signature: bytes(8), messageType: u32 };

/** MS-NLMP 2.2.1.1; the domain and the workstation after the flags are not used. */
export const NtlmNegotiate = record({ ...messageHead, flags: u32 });

/** MS-NLMP 2.2.1.2 */
export const NtlmChallenge = record({
  ...messageHead,
  targetName: utf16(payload()),
  flags: u32,
  serverChallenge: bytes(8),
  reserved: padding(8),
  targetInfo: payload(),
  version: bytes(8),
});
export type NtlmChallenge = Of<typeof NtlmChallenge>;

/** MS-NLMP 2.2.1.3 up to the flags; a version and a MIC follow where there is room before the first payload. */
export const NtlmAuthenticate = record({
  ...messageHead,
  lmResponse: payload(),
  ntResponse: payload(),
  domain: utf16(payload()),
  user: utf16(payload()),
  workstation: utf16(payload()),
  encryptedSessionKey: payload(),
  flags: u32,
});
export type NtlmAuthenticate = Of<typeof NtlmAuthenticate>;

export const MIC_AT = 72;
export const MIC_BYTES = 16;

export const MESSAGE_TYPE = { negotiate: 1, challenge: 2, authenticate: 3 } as const;

/** Throws a WireError if the bytes are not a message of this type. */
export function checkMessageType(message: Buffer, type: number): void {
  const reader = new Reader(message);
  if (!reader.bytes(8).equals(NTLM_SIGNATURE) || reader.u32() !== type) throw new WireError('not the NTLM message due');
}

export const AV_ID = {
  end: 0,
  netbiosComputerName: 1,
  netbiosDomainName: 2,
  dnsComputerName: 3,
  dnsDomainName: 4,
  flags: 6,
  timestamp: 7,
} as const;

/** In `flags` of a client's pairs: the AUTHENTICATE message has a MIC. */
export const AV_FLAG_MIC = 2;

/** The first of each id; a list without an end is taken as it is. */
export function readAvPairs(list: Buffer): Map<number, Buffer> {
  const reader = new Reader(list);
  const pairs = new Map<number, Buffer>();
  while (reader.remaining >= 4) {
    const id = reader.u16();
    const value = reader.bytes(reader.u16());
    if (id === AV_ID.end) break;
    if (!pairs.has(id)) pairs.set(id, value);
  }
  return pairs;
}

export function writeAvPairs(pairs: readonly (readonly [id: number, value: Buffer])[]): Buffer {
  const writer = new Writer();
  for (const [id, value] of [...pairs, [AV_ID.end, Buffer.alloc(0)] as const]) {
    writer.u16(id);
    writer.u16(value.length);
    writer.bytes(value);
  }
  return writer.finish();
}
