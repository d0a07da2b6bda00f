/**
 * Security descriptors, MS-DTYP 2.4.6: who owns a file and who may do what, in the self-relative binary form. Access control entries are
 * kept as their bytes, so what this server does not interpret comes back as it was sent.
 */
import { decodeSid, encodeSid, sidLength } from './sid.ts';

export const CONTROL = {
  daclPresent: 0x4,
  saclPresent: 0x10,
  daclAutoInheritRequired: 0x100,
  saclAutoInheritRequired: 0x200,
  daclAutoInherited: 0x400,
  saclAutoInherited: 0x800,
  daclProtected: 0x1000,
  saclProtected: 0x2000,
  selfRelative: 0x8000,
} as const;

export const ACE_FLAGS = {
  objectInherit: 0x1,
  containerInherit: 0x2,
  noPropagate: 0x4,
  inheritOnly: 0x8,
  inherited: 0x10,
  auditSuccess: 0x40,
  auditFailure: 0x80,
} as const;

export const ACE_TYPES = {
  allowed: 0x0,
  denied: 0x1,
  audit: 0x2,
  objectAllowed: 0x5,
  objectDenied: 0x6,
  objectAudit: 0x7,
  mandatoryLabel: 0x11,
  scopedPolicy: 0x13,
} as const;

export interface Ace {
  readonly type: number;
  readonly flags: number;
  /** What follows the header of four bytes; a multiple of four bytes. */
  readonly body: Buffer;
}

/** What an entry of a known type grants, denies or audits. */
export interface GrantedAccess {
  readonly mask: number;
  /** The 16 bytes of a GUID; entries about objects only. */
  readonly objectType?: Buffer | undefined;
  readonly inheritedObjectType?: Buffer | undefined;
}

export interface Access extends GrantedAccess {
  /** For whom. */
  readonly sid: string;
}

/** Null: a NULL ACL, which allows every access; an empty one allows none. */
export type Acl = readonly Ace[] | null;

export interface SecurityDescriptor {
  /** Without the bits that tell which lists are present. */
  readonly control: number;
  readonly owner: string | undefined;
  readonly group: string | undefined;
  readonly sacl: Acl | undefined;
  readonly dacl: Acl | undefined;
}

const HEADER_BYTES = 20;
const LIST_HEADER_BYTES = 8;
const ACE_HEADER_BYTES = 4;
const GUID_BYTES = 16;
/** The four highest bits of a mask. */
const GENERIC_MIN = 0x1000_0000;
/** S-1-3: creator owner, creator group. */
const CREATOR_AUTHORITY = 3;
/** The length of a list is a 16-bit number. */
export const LIST_BYTES_MAX = 0xffff;
const PRESENCE = CONTROL.daclPresent | CONTROL.saclPresent | CONTROL.selfRelative;
const KNOWN_TYPES: ReadonlySet<number> = new Set(Object.values(ACE_TYPES));
const OBJECT_TYPES: ReadonlySet<number> = new Set([
  ACE_TYPES.objectAllowed,
  ACE_TYPES.objectDenied,
  ACE_TYPES.objectAudit,
]);

/** Such an entry may name the type of the objects that it is about. */
export function isObjectType(type: number): boolean {
  return OBJECT_TYPES.has(type);
}

export function encodeAccess(type: number, flags: number, access: GrantedAccess, sidText: string): Ace {
  const { mask, objectType, inheritedObjectType } = access;
  const sid = encodeSid(sidText);
  const isObject = OBJECT_TYPES.has(type);
  const guids = (objectType ? GUID_BYTES : 0) + (inheritedObjectType ? GUID_BYTES : 0);
  const body = Buffer.allocUnsafe((isObject ? 8 : 4) + guids + sid.length);
  let at = body.writeUInt32LE(mask >>> 0, 0);
  if (isObject) at = body.writeUInt32LE((objectType ? 1 : 0) | (inheritedObjectType ? 2 : 0), at);
  if (objectType) at += objectType.copy(body, at);
  if (inheritedObjectType) at += inheritedObjectType.copy(body, at);
  body.set(sid, at);
  return { type, flags, body };
}

/** Undefined: the entry has a type, or bytes after the known fields, that SDDL without conditions cannot express. */
export function decodeAccess({ type, body }: Ace): Access | undefined {
  const at = sidOffset(type, body);
  const found = at === undefined ? undefined : decodeSid(body, at);
  if (at === undefined || at + (found?.length ?? 0) !== body.length || !found) return undefined;
  return { mask: body.readUInt32LE(0), sid: found.sid, ...guidsOf(type, body) };
}

/** Generic rights, or an identifier of the creator authority: they mean something else for each file. */
export function dependsOnFile({ type, body }: Ace): boolean {
  const at = sidOffset(type, body);
  return at !== undefined && (body.readUInt32LE(0) >= GENERIC_MIN || body.readUIntBE(at + 2, 6) === CREATOR_AUTHORITY);
}

/** Undefined: a list is longer than its length field can say. */
export function encodeDescriptor(descriptor: SecurityDescriptor): Buffer | undefined {
  const { owner, group, sacl, dacl } = descriptor;
  const lists = [sacl, dacl].map((list) => (list ? encodeList(list) : Buffer.alloc(0)));
  if (lists.some((list) => list.length > LIST_BYTES_MAX)) return undefined;
  const parts = [...lists, ...[owner, group].map((sid) => (sid === undefined ? Buffer.alloc(0) : encodeSid(sid)))];
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt8(1, 0);
  const present =
    (sacl === undefined ? 0 : CONTROL.saclPresent) |
    (dacl === undefined ? 0 : CONTROL.daclPresent) |
    CONTROL.selfRelative;
  header.writeUInt16LE((descriptor.control & ~PRESENCE) | present, 2);
  let end = HEADER_BYTES;
  const offsets = parts.map((part) => {
    const offset = part.length === 0 ? 0 : end;
    end += part.length;
    return offset;
  });
  const [saclAt, daclAt, ownerAt, groupAt] = offsets;
  for (const [index, offset] of [ownerAt, groupAt, saclAt, daclAt].entries())
    header.writeUInt32LE(offset!, 4 + 4 * index);
  return Buffer.concat([header, ...parts]);
}

/** Undefined: the bytes are no self-relative security descriptor. The entries are views of the bytes. */
export function decodeDescriptor(bytes: Buffer): SecurityDescriptor | undefined {
  if (bytes.length < HEADER_BYTES || bytes[0] !== 1) return undefined;
  const control = bytes.readUInt16LE(2);
  if ((control & CONTROL.selfRelative) === 0) return undefined;
  const [ownerAt, groupAt, saclAt, daclAt] = [4, 8, 12, 16].map((at) => bytes.readUInt32LE(at)) as [
    number,
    number,
    number,
    number,
  ];
  const owner = ownerAt === 0 ? undefined : decodeSid(bytes, ownerAt);
  const group = groupAt === 0 ? undefined : decodeSid(bytes, groupAt);
  const sacl = decodeListAt(bytes, saclAt, (control & CONTROL.saclPresent) !== 0);
  const dacl = decodeListAt(bytes, daclAt, (control & CONTROL.daclPresent) !== 0);
  if ((ownerAt !== 0 && !owner) || (groupAt !== 0 && !group) || sacl === 'invalid' || dacl === 'invalid')
    return undefined;
  return { control: control & ~PRESENCE, owner: owner?.sid, group: group?.sid, sacl, dacl };
}

/** Where the identifier of an entry of a known type begins. Undefined: the entry has none. */
function sidOffset(type: number, body: Buffer): number | undefined {
  if (!KNOWN_TYPES.has(type) || body.length < 8) return undefined;
  let at = 4;
  if (OBJECT_TYPES.has(type)) {
    const present = body.readUInt32LE(at);
    at += 4 + (present & 1 ? GUID_BYTES : 0) + (present & 2 ? GUID_BYTES : 0);
  }
  return sidLength(body, at) === undefined ? undefined : at;
}

function guidsOf(type: number, body: Buffer): Pick<Access, 'objectType' | 'inheritedObjectType'> {
  if (!OBJECT_TYPES.has(type)) return {};
  const present = body.readUInt32LE(4);
  const second = 8 + (present & 1 ? GUID_BYTES : 0);
  return {
    objectType: present & 1 ? body.subarray(8, 8 + GUID_BYTES) : undefined,
    inheritedObjectType: present & 2 ? body.subarray(second, second + GUID_BYTES) : undefined,
  };
}

function encodeList(list: readonly Ace[]): Buffer {
  const length = list.reduce((sum, { body }) => sum + ACE_HEADER_BYTES + body.length, LIST_HEADER_BYTES);
  const bytes = Buffer.alloc(length);
  bytes.writeUInt8(list.some(({ type }) => OBJECT_TYPES.has(type)) ? 4 : 2, 0);
  bytes.writeUInt16LE(Math.min(length, LIST_BYTES_MAX), 2);
  bytes.writeUInt16LE(Math.min(list.length, LIST_BYTES_MAX), 4);
  let at = LIST_HEADER_BYTES;
  for (const { type, flags, body } of list) {
    bytes.writeUInt8(type, at);
    bytes.writeUInt8(flags, at + 1);
    bytes.writeUInt16LE(Math.min(ACE_HEADER_BYTES + body.length, LIST_BYTES_MAX), at + 2);
    at += ACE_HEADER_BYTES + body.copy(bytes, at + ACE_HEADER_BYTES);
  }
  return bytes;
}

function decodeListAt(bytes: Buffer, at: number, isPresent: boolean): Acl | undefined | 'invalid' {
  if (!isPresent) return undefined;
  if (at === 0) return null;
  if (at + LIST_HEADER_BYTES > bytes.length) return 'invalid';
  const end = at + bytes.readUInt16LE(at + 2);
  const count = bytes.readUInt16LE(at + 4);
  if (end > bytes.length) return 'invalid';
  const list: Ace[] = [];
  let next = at + LIST_HEADER_BYTES;
  for (let index = 0; index < count; index++) {
    if (next + ACE_HEADER_BYTES > end) return 'invalid';
    const length = bytes.readUInt16LE(next + 2);
    if (length < 8 || length % 4 !== 0 || next + length > end) return 'invalid';
    const type = bytes[next]!;
    const body = bytes.subarray(next + ACE_HEADER_BYTES, next + length);
    if (KNOWN_TYPES.has(type) && sidOffset(type, body) === undefined) return 'invalid';
    list.push({ type, flags: bytes[next + 1]!, body });
    next += length;
  }
  return list;
}
