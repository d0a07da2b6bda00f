/** Compounds: several messages in one packet, each at a multiple of 8 bytes (MS-SMB2 3.3.5.2.7). */
import { HEADER_BYTES, type Header, readHeader } from './wire/header.ts';
import { Reader, WireError } from './wire/reader.ts';

export interface Message {
  readonly header: Header;
  /** From the header on, with the padding before the next message: the signature covers it. */
  readonly bytes: Buffer;
}

export function splitCompound(packet: Buffer, messagesMax: number): Message[] {
  const messages: Message[] = [];
  let start = 0;
  for (;;) {
    if (messages.length === messagesMax) throw new WireError(`a compound of more than ${messagesMax} messages`);
    const header = readHeader(new Reader(packet, start));
    const { nextCommand } = header;
    if (nextCommand === 0) {
      messages.push({ header, bytes: packet.subarray(start) });
      return messages;
    }
    if (nextCommand % 8 !== 0 || nextCommand < HEADER_BYTES || nextCommand > packet.length - start - HEADER_BYTES) {
      throw new WireError(`a compound whose next message is at ${nextCommand}`);
    }
    messages.push({ header, bytes: packet.subarray(start, start + nextCommand) });
    start += nextCommand;
  }
}
