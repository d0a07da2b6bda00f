/** TREE_CONNECT (MS-SMB2 2.2.9, 2.2.10). */
import { type Of, padding, struct, tail, u8, u16, u32, utf16 } from './struct.ts';

export const TreeConnectRequest = struct(9, { flags: u16, path: utf16(tail(2)) });
export type TreeConnectRequest = Of<typeof TreeConnectRequest>;

export const TreeConnectResponse = struct(16, {
  shareType: u8,
  reserved: padding(1),
  shareFlags: u32,
  capabilities: u32,
  maximalAccess: u32,
});
export type TreeConnectResponse = Of<typeof TreeConnectResponse>;

export const SHARE_TYPE = { disk: 1, pipe: 2 } as const;
export const SHARE_FLAG_ENCRYPT_DATA = 0x0000_8000;
/** Clients cache nothing of the share while it is not open. */
export const SHARE_FLAG_NO_CACHING = 0x30;
/** The path is an extension: not asked for by clients that do not know clusters. */
export const TREE_CONNECT_FLAG_EXTENSION = 0x0004;
