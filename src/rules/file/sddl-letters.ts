/** The letters by which SDDL names types, flags and rights of access control entries: MS-DTYP 2.5.1.1. */
import { ACE_FLAGS, ACE_TYPES } from './security-descriptor.ts';

type Table = readonly (readonly [letters: string, value: number])[];

const TYPES: Table = [
  ['A', ACE_TYPES.allowed],
  ['D', ACE_TYPES.denied],
  ['AU', ACE_TYPES.audit],
  ['OA', ACE_TYPES.objectAllowed],
  ['OD', ACE_TYPES.objectDenied],
  ['OU', ACE_TYPES.objectAudit],
  ['ML', ACE_TYPES.mandatoryLabel],
  ['SP', ACE_TYPES.scopedPolicy],
];

/** In the order in which Windows writes them. */
const FLAGS: Table = [
  ['OI', ACE_FLAGS.objectInherit],
  ['CI', ACE_FLAGS.containerInherit],
  ['NP', ACE_FLAGS.noPropagate],
  ['IO', ACE_FLAGS.inheritOnly],
  ['ID', ACE_FLAGS.inherited],
  ['SA', ACE_FLAGS.auditSuccess],
  ['FA', ACE_FLAGS.auditFailure],
];

/** Several rights under one name: written only where they are all there is. */
const RIGHT_GROUPS: Table = [
  ['FA', 0x1f_01ff],
  ['FR', 0x12_0089],
  ['FW', 0x12_0116],
  ['FX', 0x12_00a0],
  ['KA', 0xf_003f],
  ['KR', 0x2_0019],
  ['KW', 0x2_0006],
];

/** In the order of the bits, as Windows writes them. */
const RIGHTS: Table = [
  ['CC', 0x1],
  ['DC', 0x2],
  ['LC', 0x4],
  ['SW', 0x8],
  ['RP', 0x10],
  ['WP', 0x20],
  ['DT', 0x40],
  ['LO', 0x80],
  ['CR', 0x100],
  ['SD', 0x1_0000],
  ['RC', 0x2_0000],
  ['WD', 0x4_0000],
  ['WO', 0x8_0000],
  ['GA', 0x1000_0000],
  ['GX', 0x2000_0000],
  ['GW', 0x4000_0000],
  ['GR', 0x8000_0000],
];

const LABEL_RIGHTS: Table = [
  ['NW', 0x1],
  ['NR', 0x2],
  ['NX', 0x4],
];

const KNOWN_RIGHTS = new Map([...RIGHT_GROUPS, ['KX', 0x2_0019], ...RIGHTS, ...LABEL_RIGHTS]);
const KNOWN_FLAGS = new Map(FLAGS);
const KNOWN_TYPES = new Map(TYPES);

const NUMBER = /^(?:0x[0-9a-f]{1,8}|\d{1,10})$/i;

export function parseType(text: string): number | undefined {
  return KNOWN_TYPES.get(text.toUpperCase());
}

export function formatType(type: number): string | undefined {
  return TYPES.find(([, value]) => value === type)?.[0];
}

export function parseFlags(text: string): number | undefined {
  return parseLetters(text, KNOWN_FLAGS);
}

/** Undefined: a flag has no letters. */
export function formatFlags(flags: number): string | undefined {
  return formatLetters(flags, FLAGS);
}

/** Letters, or a number of 32 bits. */
export function parseRights(text: string): number | undefined {
  if (!NUMBER.test(text)) return parseLetters(text, KNOWN_RIGHTS);
  const mask = Number(text);
  return mask > 0xffff_ffff ? undefined : mask;
}

export function formatRights(mask: number, type: number): string {
  const names = type === ACE_TYPES.mandatoryLabel ? LABEL_RIGHTS : RIGHTS;
  const group = RIGHT_GROUPS.find(([, value]) => value === mask);
  return group?.[0] ?? formatLetters(mask, names) ?? `0x${mask.toString(16)}`;
}

function parseLetters(text: string, known: ReadonlyMap<string, number>): number | undefined {
  let value = 0;
  for (let at = 0; at < text.length; at += 2) {
    const bits = known.get(text.slice(at, at + 2).toUpperCase());
    if (bits === undefined) return undefined;
    value |= bits;
  }
  return value >>> 0;
}

/** Undefined: a bit has no letters. */
function formatLetters(value: number, table: Table): string | undefined {
  let rest = value;
  let text = '';
  for (const [letters, bit] of table) {
    if ((rest & bit) === 0) continue;
    text += letters;
    rest = (rest & ~bit) >>> 0;
  }
  return rest === 0 ? text : undefined;
}
