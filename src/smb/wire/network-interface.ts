/** The list of FSCTL_QUERY_NETWORK_INTERFACE_INFO (MS-SMB2 2.2.32.5). */
import { bytes, type Of, padding, record, u32, u64 } from './struct.ts';

export const NetworkInterface = record({
  next: u32,
  index: u32,
  capability: u32,
  reserved: padding(4),
  /** Bits in a second. */
  linkSpeed: u64,
  address: bytes(128),
});
export type NetworkInterface = Of<typeof NetworkInterface>;

const FAMILY = { ipv4: 2, ipv6: 23 } as const;

/** A SOCKADDR_STORAGE: family, port, and an address of 4 or 16 bytes. */
export function socketAddress(address: Buffer): Buffer {
  const storage = Buffer.alloc(128);
  const isIpv4 = address.length === 4;
  storage.writeUInt16LE(isIpv4 ? FAMILY.ipv4 : FAMILY.ipv6, 0);
  address.copy(storage, isIpv4 ? 4 : 8);
  return storage;
}
