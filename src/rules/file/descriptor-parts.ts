/** Parts of a security descriptor that a request names: SECURITY_INFORMATION of MS-DTYP 2.4.7. */
import { RIGHTS } from './access-mask.ts';
import { CONTROL, type SecurityDescriptor } from './security-descriptor.ts';

export const PARTS = { owner: 0x1, group: 0x2, dacl: 0x4, sacl: 0x8 } as const;

const DACL_CONTROL = CONTROL.daclAutoInheritRequired | CONTROL.daclAutoInherited | CONTROL.daclProtected;
const SACL_CONTROL = CONTROL.saclAutoInheritRequired | CONTROL.saclAutoInherited | CONTROL.saclProtected;

export function selectParts(descriptor: SecurityDescriptor, parts: number): SecurityDescriptor {
  const kept = (parts & PARTS.dacl ? DACL_CONTROL : 0) | (parts & PARTS.sacl ? SACL_CONTROL : 0);
  return {
    control: descriptor.control & (kept | ~(DACL_CONTROL | SACL_CONTROL)),
    owner: parts & PARTS.owner ? descriptor.owner : undefined,
    group: parts & PARTS.group ? descriptor.group : undefined,
    dacl: parts & PARTS.dacl ? descriptor.dacl : undefined,
    sacl: parts & PARTS.sacl ? descriptor.sacl : undefined,
  };
}

/** The rights that a handle needs to read these parts: MS-FSA 2.1.5.14. */
export function rightsToRead(parts: number): number {
  const audits = parts & PARTS.sacl ? RIGHTS.systemSecurity : 0;
  return audits | (parts & ~PARTS.sacl ? RIGHTS.readControl : 0);
}

/** The rights that a handle needs to change these parts: MS-FSA 2.1.5.17. */
export function rightsToSet(parts: number): number {
  const owners = parts & (PARTS.owner | PARTS.group) ? RIGHTS.writeOwner : 0;
  const audits = parts & PARTS.sacl ? RIGHTS.systemSecurity : 0;
  return owners | audits | (parts & PARTS.dacl ? RIGHTS.writeDac : 0);
}

/** Whether the descriptor has the owner and the group that are to be set; a list that it does not have is no list. */
export function isFragment({ owner, group }: SecurityDescriptor, parts: number): boolean {
  return !(parts & PARTS.owner && owner === undefined) && !(parts & PARTS.group && group === undefined);
}

/** The current descriptor with these parts of the sent one. */
export function mergeParts(current: SecurityDescriptor, sent: SecurityDescriptor, parts: number): SecurityDescriptor {
  const replaced = (parts & PARTS.dacl ? DACL_CONTROL : 0) | (parts & PARTS.sacl ? SACL_CONTROL : 0);
  const control = (current.control & ~replaced) | (inherits(sent.control) & replaced);
  return {
    control,
    owner: parts & PARTS.owner ? sent.owner : current.owner,
    group: parts & PARTS.group ? sent.group : current.group,
    dacl: parts & PARTS.dacl ? (sent.dacl ?? null) : current.dacl,
    sacl: parts & PARTS.sacl ? (sent.sacl ?? null) : current.sacl,
  };
}

/** A list counts as inherited automatically if the request asks for that and says so: MS-DTYP 2.5.3.4.1. */
function inherits(control: number): number {
  const required = CONTROL.daclAutoInheritRequired | CONTROL.saclAutoInheritRequired;
  let kept = control & ~required;
  if (!(control & CONTROL.daclAutoInheritRequired)) kept &= ~CONTROL.daclAutoInherited;
  if (!(control & CONTROL.saclAutoInheritRequired)) kept &= ~CONTROL.saclAutoInherited;
  return kept;
}
