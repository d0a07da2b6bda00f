/** SESSION_SETUP (MS-SMB2 2.2.5, 2.2.6). */
import { type Of, struct, tail, u8, u16, u32, u64 } from './struct.ts';

export const SessionSetupRequest = struct(25, {
  flags: u8,
  securityMode: u8,
  capabilities: u32,
  channel: u32,
  securityBuffer: tail(2),
  previousSessionId: u64,
});
export type SessionSetupRequest = Of<typeof SessionSetupRequest>;

export const SessionSetupResponse = struct(9, { sessionFlags: u16, securityBuffer: tail(2) });
export type SessionSetupResponse = Of<typeof SessionSetupResponse>;

/** Of a request: the session exists, and gets this connection as another channel. */
export const SETUP_FLAG_BINDING = 0x01;
/** Of a response: every message has to be encrypted. */
export const SESSION_FLAG_ENCRYPT_DATA = 0x04;
