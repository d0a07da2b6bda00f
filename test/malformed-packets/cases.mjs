/** Case N of a seed: a recorded packet, mutated. The same two numbers make the same case. */
import { readFileSync } from 'node:fs';
import { randomOf } from '../support/random.mjs';

/** @typedef {ReturnType<typeof randomOf>} Random */
/** What a packet needs before it: nothing, a negotiated connection, or a session with a share and two opens. */
/** @typedef {'connection' | 'negotiated' | 'session'} Stage */
/** @typedef {{ stage: Stage, packet: Buffer, prefix: Buffer, how: string[] }} PacketCase */
/** Ids of the connection that the packet is sent on. @typedef {{ takeMessageIds: (count: number) => bigint, sessionId: bigint, treeId: number, fileIds: readonly Buffer[] }} Ids */

const HEADER_BYTES = 64;
const COMMAND_AT = 12;
const NEXT_AT = 20;
const MESSAGE_ID_AT = 24;
const TREE_ID_AT = 36;
const SESSION_ID_AT = 40;
const NEGOTIATE = 0;
const SESSION_SETUP = 1;

/** Where the body of a command has a FileId. @type {Readonly<Record<number, number>>} */
const FILE_ID_AT = { 6: 8, 7: 8, 8: 16, 9: 16, 10: 8, 11: 8, 14: 8, 15: 8, 16: 24, 17: 16 };

/** @type {readonly { stage: Stage, packet: Buffer }[]} */
const corpus = readFileSync(new URL('corpus.jsonl', import.meta.url), 'utf8')
  .split('\n')
  .filter(Boolean)
  .map((line) => {
    const packet = Buffer.from(JSON.parse(line).hex, 'hex');
    return { stage: stageOf(packet), packet };
  });
/** @type {Readonly<Record<Stage, readonly Buffer[]>>} */
const byStage = {
  connection: corpus.filter(({ stage }) => stage === 'connection').map(({ packet }) => packet),
  negotiated: corpus.filter(({ stage }) => stage === 'negotiated').map(({ packet }) => packet),
  session: corpus.filter(({ stage }) => stage === 'session').map(({ packet }) => packet),
};
/** A valid NEGOTIATE, which comes before a mutated SESSION_SETUP. */
export const negotiatePacket = /** @type {Buffer} */ (
  byStage.connection.find((packet) => isSmb2(packet) && packet.length < 120)
);

const ODD_NUMBERS = [
  0, 1, 2, 7, 8, 63, 64, 65, 255, 256, 0x7fff, 0x8000, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff,
];

/** @type {Readonly<Record<string, (random: Random, packet: Buffer) => Buffer>>} */
const mutations = {
  'a bit is flipped': (random, packet) =>
    change(packet, (copy) => (copy[random.below(copy.length)] ^= 1 << random.below(8))),
  'a byte is another': (random, packet) =>
    change(packet, (copy) => (copy[random.below(copy.length)] = random.below(256))),
  'bytes are random': (random, packet) =>
    change(packet, (copy) => {
      const start = random.below(copy.length);
      for (let at = start; at < Math.min(copy.length, start + 1 + random.below(16)); at++) copy[at] = random.below(256);
    }),
  'two bytes are an odd number': (random, packet) =>
    change(packet, (copy) => writeAt(random, copy, 2, random.oneOf(ODD_NUMBERS) % 0x1_0000)),
  'four bytes are an odd number': (random, packet) =>
    change(packet, (copy) => writeAt(random, copy, 4, random.oneOf(ODD_NUMBERS))),
  'a number is near the length': (random, packet) =>
    change(packet, (copy) =>
      writeAt(random, copy, random.oneOf([2, 4]), Math.max(0, copy.length - 4 + random.below(9))),
    ),
  'the body has an odd number': (random, packet) =>
    change(packet, (copy) => {
      const at = HEADER_BYTES + 2 * random.below(32);
      if (at + 4 <= copy.length) copy.writeUInt32LE(random.oneOf(ODD_NUMBERS), at);
    }),
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
  'the body is of another packet': (random, packet) =>
    Buffer.concat([packet.subarray(0, HEADER_BYTES), random.oneOf(corpus).packet.subarray(HEADER_BYTES)]),
  'the command is another': (random, packet) =>
    change(packet, (copy) => copy.length > 14 && copy.writeUInt16LE(random.below(20), COMMAND_AT)),
  'another packet follows in a compound': (random, packet) => {
    const padded = Buffer.concat([packet, Buffer.alloc(-packet.length & 7)]);
    if (padded.length < HEADER_BYTES) return padded;
    padded.writeUInt32LE(random.chance(0.9) ? padded.length : random.oneOf(ODD_NUMBERS), NEXT_AT);
    const next = Buffer.from(random.oneOf(byStage.session));
    if (random.chance(0.6)) next.writeUInt32LE((next.readUInt32LE(16) | 4) >>> 0, 16);
    return Buffer.concat([padded, next]);
  },
};
const names = Object.keys(mutations);

/**
 * @param {number} seed
 * @param {number} number
 * @param {Ids} ids
 * @returns {PacketCase}
 */
export function makePacketCase(seed, number, ids) {
  const random = randomOf(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b));
  const stage = random.chance(0.8) ? 'session' : random.oneOf(/** @type {const} */ (['connection', 'negotiated']));
  let packet = Buffer.from(random.oneOf(byStage[stage]));
  if (stage === 'session') fillIds(random, packet, ids);
  const how = [];
  const count = random.chance(0.1) ? 0 : random.chance(0.7) ? 1 : 2 + random.below(3);
  for (let done = 0; done < count; done++) {
    const name = random.oneOf(names);
    packet = Buffer.from(mutations[name]?.(random, packet) ?? packet);
    how.push(name);
  }
  return { stage, packet, prefix: prefixOf(random, packet, how), how };
}

/** A header's ids are valid before the mutations, so that most packets reach a handler. */
function fillIds(
  /** @type {Random} */ random,
  /** @type {Buffer} */ packet,
  /** @type {Ids} */ { takeMessageIds, sessionId, treeId, fileIds },
) {
  for (let at = 0; at + HEADER_BYTES <= packet.length; ) {
    packet.writeBigUInt64LE(takeMessageIds(1), at + MESSAGE_ID_AT);
    packet.writeUInt32LE(treeId, at + TREE_ID_AT);
    packet.writeBigUInt64LE(sessionId, at + SESSION_ID_AT);
    // Without a signature, which nobody could make: the session does not require one.
    packet.writeUInt32LE((packet.readUInt32LE(at + 16) & ~8) >>> 0, at + 16);
    packet.fill(0, at + 48, at + 64);
    const fileIdAt = FILE_ID_AT[packet.readUInt16LE(at + COMMAND_AT)];
    if (fileIdAt !== undefined && at + HEADER_BYTES + fileIdAt + 16 <= packet.length && random.chance(0.9)) {
      random.oneOf(fileIds).copy(packet, at + HEADER_BYTES + fileIdAt);
    }
    const next = packet.readUInt32LE(at + NEXT_AT);
    if (next === 0) return;
    at += next;
  }
}

function prefixOf(/** @type {Random} */ random, /** @type {Buffer} */ packet, /** @type {string[]} */ how) {
  const prefix = Buffer.alloc(4);
  prefix.writeUIntBE(Math.min(packet.length, 0xff_ffff), 1, 3);
  if (random.chance(0.01)) {
    how.push('the length before the packet is another');
    prefix.writeUIntBE(random.below(0x100_0000), 1, 3);
  }
  return prefix;
}

function stageOf(/** @type {Buffer} */ packet) {
  if (!isSmb2(packet)) return 'connection';
  const command = packet.readUInt16LE(COMMAND_AT);
  if (command === NEGOTIATE) return 'connection';
  return command === SESSION_SETUP ? 'negotiated' : 'session';
}

function isSmb2(/** @type {Buffer} */ packet) {
  return packet.readUInt32LE(0) === 0x424d53fe;
}

function change(/** @type {Buffer} */ packet, /** @type {(copy: any) => unknown} */ by) {
  const copy = Buffer.from(packet);
  if (copy.length > 0) by(copy);
  return copy;
}

function writeAt(
  /** @type {Random} */ random,
  /** @type {Buffer} */ copy,
  /** @type {number} */ size,
  /** @type {number} */ value,
) {
  if (copy.length < size) return;
  copy.writeUIntLE(value % 2 ** (8 * size), random.below(copy.length - size + 1), size);
}
