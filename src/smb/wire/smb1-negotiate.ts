/** The dialects of an SMB1 NEGOTIATE (MS-SMB 2.2.4.5.1): after the header a count of words, which is 0, and strings that begin with a 2. */
import { Reader, WireError } from './reader.ts';

const HEADER_BYTES = 32;
const COMMAND_AT = 4;
const NEGOTIATE = 0x72;

export function readSmb1Dialects(packet: Buffer): string[] {
  const reader = new Reader(packet);
  if (reader.bytes(HEADER_BYTES)[COMMAND_AT] !== NEGOTIATE) throw new WireError('a message of SMB1');
  reader.skip(2 * reader.u8());
  const strings = reader.bytes(reader.u16());
  return strings
    .toString('latin1')
    .split('\0')
    .map((text) => (text.startsWith('\x02') ? text.slice(1) : text))
    .filter((text) => text !== '');
}
