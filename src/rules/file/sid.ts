/** Security identifiers, MS-DTYP 2.4.2: the text S-1-..., the binary form, and the two letters by which SDDL abbreviates well-known ones. */

const SID = /^S-1-(\d{1,10}|0x[0-9a-f]{1,12})((?:-\d{1,10}){1,15})$/i;
const U32_MAX = 0xffff_ffff;
const AUTHORITY_MAX = 2 ** 48 - 1;

/** MS-DTYP 2.4.2.4 and 2.5.1.1. Abbreviations that stand for members of a domain are absent: this server belongs to none. */
const WELL_KNOWN: Readonly<Record<string, string>> = {
  AA: 'S-1-5-32-579',
  AC: 'S-1-15-2-1',
  AN: 'S-1-5-7',
  AO: 'S-1-5-32-548',
  AS: 'S-1-18-1',
  AU: 'S-1-5-11',
  BA: 'S-1-5-32-544',
  BG: 'S-1-5-32-546',
  BO: 'S-1-5-32-551',
  BU: 'S-1-5-32-545',
  CD: 'S-1-5-32-574',
  CG: 'S-1-3-1',
  CO: 'S-1-3-0',
  CY: 'S-1-5-32-569',
  ED: 'S-1-5-9',
  ER: 'S-1-5-32-573',
  ES: 'S-1-5-32-576',
  HA: 'S-1-5-32-578',
  HI: 'S-1-16-12288',
  IS: 'S-1-5-32-568',
  IU: 'S-1-5-4',
  LS: 'S-1-5-19',
  LU: 'S-1-5-32-559',
  LW: 'S-1-16-4096',
  ME: 'S-1-16-8192',
  MP: 'S-1-16-8448',
  MS: 'S-1-5-32-577',
  MU: 'S-1-5-32-558',
  NO: 'S-1-5-32-556',
  NS: 'S-1-5-20',
  NU: 'S-1-5-2',
  OW: 'S-1-3-4',
  PO: 'S-1-5-32-550',
  PS: 'S-1-5-10',
  PU: 'S-1-5-32-547',
  RA: 'S-1-5-32-575',
  RC: 'S-1-5-12',
  RD: 'S-1-5-32-555',
  RE: 'S-1-5-32-552',
  RM: 'S-1-5-32-580',
  RU: 'S-1-5-32-554',
  SI: 'S-1-16-16384',
  SO: 'S-1-5-32-549',
  SS: 'S-1-18-2',
  SU: 'S-1-5-6',
  SY: 'S-1-5-18',
  UD: 'S-1-5-84-0-0-0-0-0',
  WD: 'S-1-1-0',
  WR: 'S-1-5-33',
};
const ABBREVIATIONS = new Map(Object.entries(WELL_KNOWN).map(([letters, sid]) => [sid, letters]));

export const CREATOR_OWNER = WELL_KNOWN.CO!;
export const CREATOR_GROUP = WELL_KNOWN.CG!;
export const SYSTEM = WELL_KNOWN.SY!;

/** Two letters or S-1-..., in any case; the canonical text. Undefined: neither. */
export function parseSid(text: string): string | undefined {
  const known = text.length === 2 ? WELL_KNOWN[text.toUpperCase()] : undefined;
  if (known !== undefined) return known;
  const [, authority, rest] = SID.exec(text) ?? [];
  if (authority === undefined || rest === undefined) return undefined;
  const numbers = rest.slice(1).split('-').map(Number);
  if (Number(authority) > AUTHORITY_MAX || numbers.some((number) => number > U32_MAX)) return undefined;
  return formatNumbers(Number(authority), numbers);
}

export function abbreviateSid(sid: string): string {
  return ABBREVIATIONS.get(sid) ?? sid;
}

export function encodeSid(sid: string): Buffer {
  const numbers = sid.split('-');
  const count = numbers.length - 3;
  const bytes = Buffer.allocUnsafe(8 + 4 * count);
  bytes[0] = 1;
  bytes[1] = count;
  bytes.writeUIntBE(Number(numbers[2]), 2, 6);
  for (let i = 0; i < count; i++) bytes.writeUInt32LE(Number(numbers[3 + i]), 8 + 4 * i);
  return bytes;
}

/** Of the identifier that begins at `at`. Undefined: there is none. */
export function sidLength(bytes: Buffer, at: number): number | undefined {
  if (at + 8 > bytes.length || bytes[at] !== 1) return undefined;
  const count = bytes[at + 1]!;
  const length = 8 + 4 * count;
  return count === 0 || count > 15 || at + length > bytes.length ? undefined : length;
}

/** The identifier that begins at `at`, and its length. Undefined: there is none. */
export function decodeSid(bytes: Buffer, at: number): { readonly sid: string; readonly length: number } | undefined {
  const length = sidLength(bytes, at);
  if (length === undefined) return undefined;
  const numbers: number[] = [];
  for (let next = at + 8; next < at + length; next += 4) numbers.push(bytes.readUInt32LE(next));
  return { sid: formatNumbers(bytes.readUIntBE(at + 2, 6), numbers), length };
}

function formatNumbers(authority: number, numbers: readonly number[]): string {
  const top = authority > U32_MAX ? `0x${authority.toString(16).padStart(12, '0').toUpperCase()}` : authority;
  return `S-1-${top}-${numbers.join('-')}`;
}
