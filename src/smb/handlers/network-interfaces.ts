/** FSCTL_QUERY_NETWORK_INTERFACE_INFO: the address over which the client has come is the one that it can use (MS-SMB2 3.3.5.15.11). */
import { isIPv4 } from 'node:net';
import type { RequestContext } from '../command.ts';
import { DIALECT } from '../dialects.ts';
import { SmbError } from '../statuses.ts';
import { writeChain } from '../wire/chain.ts';
import type { IoctlRequest } from '../wire/ioctl.ts';
import { NetworkInterface, socketAddress } from '../wire/network-interface.ts';

const LINK_SPEED = 1_000_000_000n;

export function networkInterfaces({ maxOutputResponse }: IoctlRequest, { connection }: RequestContext): Buffer {
  if (connection.negotiated?.dialect === DIALECT.smb210) throw new SmbError('INVALID_DEVICE_REQUEST');
  const address = socketAddress(parseAddress(connection.localAddress));
  const output = writeChain([
    NetworkInterface.encode({ next: 0, index: 1, capability: 0, linkSpeed: LINK_SPEED, address }),
  ]);
  if (output.length > maxOutputResponse) throw new SmbError('BUFFER_TOO_SMALL');
  return output;
}

/** An IPv4 address that Node shows as IPv6 is an IPv4 address. */
function parseAddress(text: string): Buffer {
  const plain = text.replace(/^::ffff:/i, '').replace(/%.*$/, '');
  if (isIPv4(plain)) return Buffer.from(plain.split('.').map(Number));
  const [head = '', tail] = plain.split('::');
  const groups = (part: string) => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)));
  const [first, last] = [groups(head), groups(tail ?? '')];
  const middle = tail === undefined ? [] : Array.from({ length: 8 - first.length - last.length }, () => 0);
  const address = Buffer.alloc(16);
  for (const [index, group] of [...first, ...middle, ...last].entries()) address.writeUInt16BE(group, 2 * index);
  return address;
}
