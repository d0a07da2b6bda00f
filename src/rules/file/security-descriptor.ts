/**
 * Security descriptors, MS-DTYP 2.4.6: who owns a file and who may do what, in the self-relative binary form. Access control entries are
 * kept as their bytes, so what this server does not interpret comes back as it was sent.
 */
import { decodeSid, encodeSid } from './sid.ts';

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

/** What an entry of a known type grants, denies or audits, and for whom. */
export interface Access {
  readonly mask: number;
  readonly sid: string;
  /** The 16 bytes of a GUID; entries about objects only. */
  readonly objectType?: Buffer | undefined;
  readonly inheritedObjectType?: Buffer | undefined;
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

export function encodeAccess(type: number, flags: number, access: Access): Ace {
  const head = Buffer.alloc(OBJECT_TYPES.has(type) ? 8 : 4);
  head.writeUInt32LE(access.mask >>> 0, 0);
  if (head.length === 8) head.writeUInt32LE((access.objectType ? 1 : 0) | (access.inheritedObjectType ? 2 : 0), 4);
  const guids = [access.objectType, access.inheritedObjectType].filter((guid) => guid !== undefined);
  return { type, flags, body: Buffer.concat([head, ...guids, encodeSid(access.sid)]) };
}

/** Undefined: the entry has a type, or bytes after the known fields, that SDDL without conditions cannot express. */
export function decodeAccess(ace: Ace): Access | undefined {
  const fields = readFields(ace);
  return fields?.end === ace.body.length ? fields.access : undefined;
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

/** Undefined: the bytes are no self-relative security descriptor. */
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

function readFields({ type, body }: Ace): { readonly access: Access; readonly end: number } | undefined {
  if (!KNOWN_TYPES.has(type) || body.length < 8) return undefined;
  const mask = body.readUInt32LE(0);
  let at = 4;
  let objectType: Buffer | undefined;
  let inheritedObjectType: Buffer | undefined;
  if (OBJECT_TYPES.has(type)) {
    const present = body.readUInt32LE(at);
    at += 4;
    if (present & 1) {
      objectType = body.subarray(at, at + 16);
      at += 16;
    }
    if (present & 2) {
      inheritedObjectType = body.subarray(at, at + 16);
      at += 16;
    }
  }
  const found = decodeSid(body, at);
  return found && { access: { mask, sid: found.sid, objectType, inheritedObjectType }, end: at + found.length };
}

function encodeList(list: readonly Ace[]): Buffer {
  const entries = list.map(({ type, flags, body }) => {
    const head = Buffer.from([type, flags, 0, 0]);
    head.writeUInt16LE(Math.min(4 + body.length, LIST_BYTES_MAX), 2);
    return Buffer.concat([head, body]);
  });
  const header = Buffer.alloc(LIST_HEADER_BYTES);
  const length = entries.reduce((sum, entry) => sum + entry.length, LIST_HEADER_BYTES);
  header.writeUInt8(list.some(({ type }) => OBJECT_TYPES.has(type)) ? 4 : 2, 0);
  header.writeUInt16LE(Math.min(length, LIST_BYTES_MAX), 2);
  header.writeUInt16LE(Math.min(list.length, LIST_BYTES_MAX), 4);
  return Buffer.concat([header, ...entries]);
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
    if (next + 4 > end) return 'invalid';
    const length = bytes.readUInt16LE(next + 2);
    if (length < 8 || length % 4 !== 0 || next + length > end) return 'invalid';
    const ace = {
      type: bytes[next]!,
      flags: bytes[next + 1]!,
      body: Buffer.from(bytes.subarray(next + 4, next + length)),
    };
    if (KNOWN_TYPES.has(ace.type) && readFields(ace) === undefined) return 'invalid';
    list.push(ace);
    next += length;
  }
  return list;
}
