/** Access masks of files and directories: MS-DTYP 2.4.3 and MS-SMB2 2.2.13.1. */

export const RIGHTS = {
  readData: 0x1,
  writeData: 0x2,
  appendData: 0x4,
  readEa: 0x8,
  writeEa: 0x10,
  execute: 0x20,
  deleteChild: 0x40,
  readAttributes: 0x80,
  writeAttributes: 0x100,
  delete: 0x1_0000,
  readControl: 0x2_0000,
  writeDac: 0x4_0000,
  writeOwner: 0x8_0000,
  synchronize: 0x10_0000,
  systemSecurity: 0x100_0000,
} as const;

/** All rights on a file; the key of an account is a superuser, which no permission binds. */
export const ALL_RIGHTS = 0x1f_01ff;
const MAXIMUM_ALLOWED = 0x200_0000;
/** No meaning is defined for them. */
const RESERVED = 0x0ce0_fe00;

/** What the generic rights are for files: read, write, execute, all. */
export const GENERIC: readonly (readonly [generic: number, specific: number])[] = [
  [0x8000_0000, 0x12_0089],
  [0x4000_0000, 0x12_0116],
  [0x2000_0000, 0x12_00a0],
  [0x1000_0000, ALL_RIGHTS],
];

/**
 * The rights that an open with this mask has. ACCESS_SYSTEM_SECURITY, by which the list for audits is read and set, is a privilege, not a permission
 * on the file: the key of an account has it, and it is granted to who asks for it by its own name.
 * @param maximum what the caller may have at most, which MAXIMUM_ALLOWED asks for
 * @returns undefined: the mask asks for nothing, or for more
 */
export function grantRights(mask: number, maximum: number = ALL_RIGHTS): number | undefined {
  if (mask === 0 || mask & RESERVED) return undefined;
  const asked = withoutGeneric(mask);
  const specific = asked & ~MAXIMUM_ALLOWED;
  if (specific & ~(maximum | RIGHTS.systemSecurity)) return undefined;
  return (asked & MAXIMUM_ALLOWED ? specific | maximum : specific) >>> 0;
}

export function withoutGeneric(mask: number): number {
  let specific = mask;
  for (const [generic, rights] of GENERIC) if (specific & generic) specific = (specific & ~generic) | rights;
  return specific >>> 0;
}
