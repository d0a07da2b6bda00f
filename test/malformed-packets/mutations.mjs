/** What happens to a packet before it is sent: changes of its bytes, and of what its fields mean. */
import {
  CLASS_AT,
  COMMAND,
  COMMAND_AT,
  CONTROL_CODES,
  CREATE_CONTEXTS,
  CREDIT_CHARGE_AT,
  CREDITS_AT,
  FIXED_BYTES,
  HEADER_BYTES,
  messagesOf,
  NEXT_AT,
  SIZES_AT,
} from './message-fields.mjs';

/** @typedef {ReturnType<typeof import('../support/random.mjs').randomOf>} Random */
/** @typedef {Readonly<Record<string, (random: Random, packet: Buffer) => Buffer>>} Mutations */

const ODD_NUMBERS = [
  0, 1, 2, 7, 8, 63, 64, 65, 255, 256, 0x7fff, 0x8000, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff,
];

/** Of any bytes. @type {Mutations} */
export const byteMutations = {
  'a bit is flipped': (random, packet) =>
    change(packet, (copy) => (copy[random.below(copy.length)] ^= 1 << random.below(8))),
  'a byte is another': (random, packet) =>
    change(packet, (copy) => (copy[random.below(copy.length)] = random.below(256))),
  'bytes are random': (random, packet) =>
    change(packet, (copy) => {
      const start = random.below(copy.length);
      for (let at = start; at < Math.min(copy.length, start + 1 + random.below(16)); at++) copy[at] = random.below(256);
    }),
  'two bytes are an odd number': (random, packet) => change(packet, (copy) => writeAnywhere(random, copy, 2)),
  'four bytes are an odd number': (random, packet) => change(packet, (copy) => writeAnywhere(random, copy, 4)),
  'the end is cut off': (random, packet) => packet.subarray(0, random.below(packet.length) + 1),
  'the end is longer': (random, packet) =>
    Buffer.concat([packet, Buffer.alloc(1 + random.below(300), random.below(256))]),
  'a part is missing': (random, packet) => {
    const [start, count] = [random.below(packet.length), random.below(32)];
    return Buffer.concat([packet.subarray(0, start), packet.subarray(start + count)]);
  },
  'a part comes twice': (random, packet) => {
    const [start, count] = [random.below(packet.length), random.below(64)];
    return Buffer.concat([packet.subarray(0, start + count), packet.subarray(start)]);
  },
};

/** Of the fields of one message: the others of a compound, and the header, stay as they are. @type {Mutations} */
export const fieldMutations = {
  'an offset, a length or a count is odd': inMessage((random, message, command) => {
    const field = random.oneOf(SIZES_AT[command] ?? [[2, 2]]);
    writeNumber(random, message, HEADER_BYTES + field[0], field[1]);
  }),
  'a number of the body is odd': inMessage((random, message) =>
    writeNumber(random, message, HEADER_BYTES + 2 * random.below(32), random.oneOf([2, 4])),
  ),
  'a byte of the body is another': inMessage((random, message) => {
    if (message.length > HEADER_BYTES)
      message[HEADER_BYTES + random.below(message.length - HEADER_BYTES)] = random.below(256);
  }),
  'a number of the buffer is odd': inMessage((random, message, command) => {
    const start = HEADER_BYTES + (FIXED_BYTES[command] ?? 24);
    const places = Math.max(1, (message.length - start) >> 1);
    writeNumber(random, message, start + 2 * random.below(places), random.oneOf([1, 2, 4]));
  }),
  'a field of a create context is odd': inMessage((random, message, command) => {
    const start = command === COMMAND.create && message.length >= 120 ? message.readUInt32LE(HEADER_BYTES + 48) : 0;
    if (start === 0) return;
    const field = random.oneOf([
      [0, 4],
      [4, 2],
      [6, 2],
      [10, 2],
      [12, 4],
    ]);
    if (random.chance(0.7)) writeNumber(random, message, start + field[0], field[1]);
    else if (start + 20 <= message.length) message.write(random.oneOf(CREATE_CONTEXTS), start + 16, 'latin1');
  }),
  'the class of the information is another': inMessage((random, message, command) => {
    const at = HEADER_BYTES + random.oneOf(CLASS_AT[command] ?? [2]);
    if (at < message.length) message[at] = random.below(random.oneOf([5, 70, 256]));
  }),
  'the control code is another': inMessage((random, message, command) => {
    if (command !== COMMAND.ioctl || message.length < HEADER_BYTES + 8) return;
    message.writeUInt32LE(random.oneOf(CONTROL_CODES), HEADER_BYTES + 4);
  }),
  'the credits are odd': inMessage((random, message) => {
    const value = random.chance(0.5) ? random.below(20) : random.oneOf(ODD_NUMBERS) % 0x1_0000;
    message.writeUInt16LE(value, random.oneOf([CREDIT_CHARGE_AT, CREDITS_AT]));
  }),
};

/** Of the header, most of which end the connection. @type {Mutations} */
export const headerMutations = {
  'a byte of the header is another': (random, packet) =>
    change(packet, (copy) => (copy[random.below(Math.min(copy.length, HEADER_BYTES))] = random.below(256))),
  'the command is another': inMessage((random, message) => message.writeUInt16LE(random.below(20), COMMAND_AT)),
  'the next message is elsewhere': inMessage((random, message) => writeNumber(random, message, NEXT_AT, 4)),
};

/** @param {(random: Random, message: Buffer, command: number) => unknown} by */
function inMessage(by) {
  return (/** @type {Random} */ random, /** @type {Buffer} */ packet) =>
    change(packet, (copy) => {
      const messages = messagesOf(copy);
      if (messages.length === 0) return;
      const { start, end, command } = random.oneOf(messages);
      by(random, copy.subarray(start, end), command);
    });
}

/** An odd number, or one near the length, or near what was there. */
function writeNumber(
  /** @type {Random} */ random,
  /** @type {Buffer} */ bytes,
  /** @type {number} */ at,
  /** @type {number} */ size,
) {
  if (at + size > bytes.length) return;
  const near = random.chance(0.5) ? bytes.length : bytes.readUIntLE(at, size);
  const value = random.chance(0.5) ? random.oneOf(ODD_NUMBERS) : Math.max(0, near - 4 + random.below(9));
  bytes.writeUIntLE(value % 2 ** (8 * size), at, size);
}

function writeAnywhere(/** @type {Random} */ random, /** @type {Buffer} */ bytes, /** @type {number} */ size) {
  writeNumber(random, bytes, random.below(Math.max(1, bytes.length - size + 1)), size);
}

function change(/** @type {Buffer} */ packet, /** @type {(copy: any) => unknown} */ by) {
  const copy = Buffer.from(packet);
  if (copy.length > 0) by(copy);
  return copy;
}
