/** IP addresses that a name must not lead to: those of this machine, of its link, and of the metadata services of clouds. */
import { BlockList, isIP } from 'node:net';

const RESERVED_IPV4: readonly (readonly [address: string, prefix: number])[] = [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  // Link-local; also the metadata of most clouds.
  ['169.254.0.0', 16],
  ['192.0.0.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
  // Metadata of Azure and Alibaba.
  ['168.63.129.16', 32],
  ['100.100.100.200', 32],
];
const RESERVED_IPV6: readonly (readonly [address: string, prefix: number])[] = [
  // Unspecified, loopback, and addresses that have an IPv4 address within them, except those of NAT64.
  ['::', 96],
  ['2001::', 32],
  ['2002::', 16],
  ['64:ff9b:1::', 48],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
  // Metadata of Amazon.
  ['fd00:ec2::254', 128],
];

/** It also finds IPv4 addresses that are mapped to IPv6. */
const reserved = new BlockList();
for (const [address, prefix] of RESERVED_IPV4) reserved.addSubnet(address, prefix, 'ipv4');
for (const [address, prefix] of RESERVED_IPV6) reserved.addSubnet(address, prefix, 'ipv6');

/** RFC 6052: the last 32 bits are the IPv4 address that the packets go to. */
const nat64 = new BlockList();
nat64.addSubnet('64:ff9b::', 96, 'ipv6');

/** Whether a name may lead to this address. Private networks are no secret to an operator who names a host in one. */
export function isReachableByName(address: string): boolean {
  const [numeric = ''] = address.split('%');
  const family = isIP(numeric);
  if (family === 4) return !reserved.check(numeric, 'ipv4');
  if (family !== 6) return false;
  if (nat64.check(numeric, 'ipv6')) return isReachableByName(lastIpv4(numeric));
  return !reserved.check(numeric, 'ipv6');
}

function lastIpv4(address: string): string {
  // A URL has the canonical form: hexadecimal groups.
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1).split(':').slice(-2);
  const [high = 0, low = 0] = groups.map((group) => Number.parseInt(group || '0', 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}
