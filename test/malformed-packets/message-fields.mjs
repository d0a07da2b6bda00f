/** Where the messages of SMB2 have what mutations are about: offsets from the beginning of a message's body, and bytes. */

export const HEADER_BYTES = 64;
export const CREDIT_CHARGE_AT = 6;
export const COMMAND_AT = 12;
export const CREDITS_AT = 14;
export const FLAGS_AT = 16;
export const NEXT_AT = 20;
export const MESSAGE_ID_AT = 24;
export const TREE_ID_AT = 36;
export const SESSION_ID_AT = 40;

export const COMMAND = { negotiate: 0, sessionSetup: 1, create: 5, ioctl: 11, cancel: 12, setInfo: 17 };
export const RELATED = 4;
export const SIGNED = 8;

/** Where the body of a command has a FileId. @type {Readonly<Record<number, number>>} */
export const FILE_ID_AT = { 6: 8, 7: 8, 8: 16, 9: 16, 10: 8, 11: 8, 14: 8, 15: 8, 16: 24, 17: 16 };

/** Offsets, lengths and counts of each command, as [place, bytes]. @type {Readonly<Record<number, readonly (readonly [number, number])[]>>} */
export const SIZES_AT = {
  0: [
    [2, 2],
    [28, 4],
    [32, 2],
  ],
  1: [
    [12, 2],
    [14, 2],
  ],
  3: [
    [4, 2],
    [6, 2],
  ],
  5: [
    [44, 2],
    [46, 2],
    [48, 4],
    [52, 4],
  ],
  8: [
    [4, 4],
    [8, 4],
    [12, 4],
    [32, 4],
    [44, 2],
    [46, 2],
  ],
  9: [
    [2, 2],
    [4, 4],
    [8, 4],
    [12, 4],
    [40, 2],
    [42, 2],
  ],
  10: [[2, 2]],
  11: [
    [24, 4],
    [28, 4],
    [32, 4],
    [36, 4],
    [40, 4],
    [44, 4],
  ],
  14: [
    [4, 4],
    [24, 2],
    [26, 2],
    [28, 4],
  ],
  15: [[4, 4]],
  16: [
    [4, 4],
    [8, 2],
    [12, 4],
    [16, 4],
  ],
  17: [
    [4, 4],
    [8, 2],
    [12, 4],
  ],
};

/** Bytes of the body before its buffers. @type {Readonly<Record<number, number>>} */
export const FIXED_BYTES = { 0: 36, 1: 24, 3: 8, 5: 56, 8: 48, 9: 48, 10: 24, 11: 56, 14: 32, 16: 40, 17: 32 };

/** The kind and the class of an information. @type {Readonly<Record<number, readonly number[]>>} */
export const CLASS_AT = { 14: [2], 16: [2, 3], 17: [2, 3] };

export const CONTROL_CODES = [
  0x11c017, 0x140078, 0x140204, 0x1401fc, 0x1440f2, 0x1480f2, 0x144064, 0x60194, 0x601b0, 0x900c0, 0x900c4, 0x9003c,
  0x9c040, 0x980c8, 0x940cf, 0x900a4, 0x900a8, 0x98344,
];
export const CREATE_CONTEXTS = ['MxAc', 'QFid', 'TWrp', 'AlSi', 'SecD', 'ExtA', 'DHnQ', 'DHnC', 'DH2Q', 'DH2C', 'RqLs'];

/**
 * The messages of a packet, by their places, as far as they can be told apart.
 * @param {Buffer} packet
 */
export function messagesOf(packet) {
  /** @type {{ start: number, end: number, command: number }[]} */
  const messages = [];
  for (let start = 0; start + HEADER_BYTES <= packet.length; ) {
    const next = packet.readUInt32LE(start + NEXT_AT);
    const isLast = next < HEADER_BYTES || start + next + HEADER_BYTES > packet.length;
    const end = isLast ? packet.length : start + next;
    messages.push({ start, end, command: packet.readUInt16LE(start + COMMAND_AT) });
    start = end;
  }
  return messages;
}
