/** The permission of a new file or directory, as Windows derives it: MS-DTYP 2.5.3.4, automatic inheritance. */
import { withoutGeneric } from './access-mask.ts';
import type { NodeKind } from './attributes.ts';
import { parseSddl } from './sddl.ts';
import {
  ACE_FLAGS,
  type Access,
  type Ace,
  CONTROL,
  decodeAccess,
  dependsOnFile,
  encodeAccess,
  type SecurityDescriptor,
} from './security-descriptor.ts';
import { CREATOR_GROUP, CREATOR_OWNER, SYSTEM } from './sid.ts';

/** Azure Files' documented permission of a share's root. REST requests are made by the account's key, and so by the system. */
export const ROOT_DESCRIPTOR: SecurityDescriptor = parseSddl(
  'O:SYG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;;FA;;;SY)(A;OICI;0x1301bf;;;AU)(A;;0x1200a9;;;BU)(A;OICIIO;GXGR;;;BU)(A;OICIIO;GA;;;CO)',
)!;

const { objectInherit, containerInherit, noPropagate, inheritOnly, inherited } = ACE_FLAGS;
const INHERITANCE = objectInherit | containerInherit | noPropagate | inheritOnly;

interface Owners {
  readonly owner: string;
  readonly group: string;
}

/** The request names no permission: all of it comes from the directory above. */
export function inheritPermission(parent: SecurityDescriptor, kind: NodeKind): SecurityDescriptor {
  const owners = { owner: SYSTEM, group: SYSTEM };
  return {
    control: CONTROL.daclAutoInherited,
    ...owners,
    sacl: undefined,
    dacl: inheritEntries(parent, kind, owners),
  };
}

/**
 * The request of a create names a permission: its own entries come first, then those of the directory above, unless the list is protected
 * from them. Entries that it calls inherited are not taken over: they came from another directory.
 */
export function mergePermission(
  named: SecurityDescriptor,
  parent: SecurityDescriptor,
  kind: NodeKind,
): SecurityDescriptor {
  if (!named.dacl || (named.control & CONTROL.daclProtected) !== 0) return named;
  const owners = { owner: named.owner ?? SYSTEM, group: named.group ?? SYSTEM };
  const own = named.dacl.filter(({ flags }) => (flags & inherited) === 0);
  return {
    ...named,
    control: named.control | CONTROL.daclAutoInherited,
    dacl: [...own, ...inheritEntries(parent, kind, owners)],
  };
}

function inheritEntries(parent: SecurityDescriptor, kind: NodeKind, owners: Owners): readonly Ace[] {
  return (parent.dacl ?? []).flatMap((ace) =>
    kind === 'file' ? inheritByFile(ace, owners) : inheritByDirectory(ace, owners),
  );
}

function inheritByFile(ace: Ace, owners: Owners): readonly Ace[] {
  return ace.flags & objectInherit ? [makeEffective(ace, owners)] : [];
}

function inheritByDirectory(ace: Ace, owners: Owners): readonly Ace[] {
  const passesOn = (ace.flags & noPropagate) === 0;
  const kept = ace.flags & (objectInherit | containerInherit);
  if ((ace.flags & containerInherit) === 0) {
    // For files further below: the directory itself is not concerned.
    return kept && passesOn ? [withFlags(ace, kept | inheritOnly | inherited)] : [];
  }
  const effective = makeEffective(ace, owners);
  if (!passesOn) return [effective];
  if (effective.body.equals(ace.body)) return [withFlags(ace, kept | inherited)];
  // What stands for the creator, or for generic rights, is passed on as it is beside what it means here.
  return [effective, withFlags(ace, kept | inheritOnly | inherited)];
}

function makeEffective(ace: Ace, owners: Owners): Ace {
  const flags = (ace.flags & ~INHERITANCE) | inherited;
  const access = dependsOnFile(ace) ? decodeAccess(ace) : undefined;
  if (access === undefined) return withFlags(ace, flags);
  const resolved = resolveAccess(access, owners);
  return encodeAccess(ace.type, flags, resolved, resolved.sid);
}

function resolveAccess(access: Access, { owner, group }: Owners): Access {
  let { sid } = access;
  if (sid === CREATOR_OWNER) sid = owner;
  else if (sid === CREATOR_GROUP) sid = group;
  return { ...access, mask: withoutGeneric(access.mask), sid };
}

function withFlags(ace: Ace, flags: number): Ace {
  return { ...ace, flags };
}
