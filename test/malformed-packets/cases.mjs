/** Case N of a seed: a recorded packet, mutated. The same two numbers make the same case. */
import { readFileSync } from 'node:fs';
import { randomOf } from '../support/random.mjs';
import {
  COMMAND,
  COMMAND_AT,
  CREDIT_CHARGE_AT,
  FILE_ID_AT,
  FLAGS_AT,
  HEADER_BYTES,
  MESSAGE_ID_AT,
  messagesOf,
  NEXT_AT,
  RELATED,
  SESSION_ID_AT,
  SIGNED,
  TREE_ID_AT,
} from './message-fields.mjs';
import { byteMutations, fieldMutations, headerMutations } from './mutations.mjs';

/** @typedef {import('./mutations.mjs').Random} Random */
/** Ids of the session that the packet is sent in. */
/** @typedef {{ nextMessageId: bigint, sessionId: bigint, treeId: number, pipeTreeId: number, fileIds: readonly Buffer[], pipeId: Buffer }} Ids */
/**
 * What a case does: sends a packet to a new connection, or after a valid NEGOTIATE; signs in with changed tokens; or sends a packet of a session.
 * @typedef {{ stage: 'connection' | 'negotiated', how: string[], packet: Buffer }
 *   | { stage: 'sign-in', how: string[], changeToken: (token: Buffer) => Buffer, changeProved: (part: Buffer) => Buffer, isWrapped: boolean }
 *   | { stage: 'session', how: string[], makePacket: (ids: Ids) => Buffer, damage: (bytes: Buffer) => Buffer }} PacketCase
 */

/** @type {readonly Buffer[]} */
const corpus = readFileSync(new URL('corpus.jsonl', import.meta.url), 'utf8')
  .split('\n')
  .filter(Boolean)
  .map((line) => Buffer.from(JSON.parse(line).hex, 'hex'));
const isSmb2 = (/** @type {Buffer} */ packet) => packet.readUInt32LE(0) === 0x424d53fe;
const commandOf = (/** @type {Buffer} */ packet) => packet.readUInt16LE(COMMAND_AT);
const isOf = (/** @type {number} */ command) => (/** @type {Buffer} */ packet) =>
  isSmb2(packet) && commandOf(packet) === command;
const PIPE_TRANSCEIVE = 0x11c017;
const isForPipe = (/** @type {Buffer} */ packet) =>
  isOf(COMMAND.ioctl)(packet) && packet.readUInt32LE(HEADER_BYTES + 4) === PIPE_TRANSCEIVE;

const toConnection = corpus.filter((packet) => !isSmb2(packet) || isOf(COMMAND.negotiate)(packet));
const toNegotiated = corpus.filter(isOf(COMMAND.sessionSetup));
const inSession = corpus.filter((packet) => !toConnection.includes(packet) && !toNegotiated.includes(packet));
/** LOGOFF and TREE_DISCONNECT, after which a session is of no use. */
const ENDINGS = [2, 4];
const byCommand = [...new Set(inSession.map(commandOf))]
  .filter((command) => !ENDINGS.includes(command))
  .map((command) => inSession.filter(isOf(command)));
const endings = inSession.filter((packet) => ENDINGS.includes(commandOf(packet)));
const forPipe = inSession.filter(isForPipe);
const withContexts = inSession.filter(
  (packet) => isOf(COMMAND.create)(packet) && packet.readUInt32LE(HEADER_BYTES + 52) > 0,
);
/** A valid NEGOTIATE, which comes before a mutated SESSION_SETUP. */
export const negotiatePacket = /** @type {Buffer} */ (
  toConnection.find((packet) => isSmb2(packet) && packet.length < 120)
);
/** Binds to srvsvc: before that its operations are not called. */
export const bindPacket = /** @type {Buffer} */ (forPipe.find((packet) => packet[HEADER_BYTES + 58] === 11));
/** More than a compound may have. */
const COMPOUND_MAX = 70;

/**
 * @param {number} seed
 * @param {number} number
 * @returns {PacketCase}
 */
export function makePacketCase(seed, number) {
  const random = randomOf(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b));
  /** @type {string[]} */
  const how = [];
  const which = random.below(100);
  if (which < 3) return { stage: 'connection', how, packet: mutate(random, how, random.oneOf(toConnection)) };
  if (which < 6) return { stage: 'negotiated', how, packet: mutate(random, how, random.oneOf(toNegotiated)) };
  if (which < 12) return signIn(random, how);
  return {
    stage: 'session',
    how,
    makePacket: (ids) => mutate(random, how, fillIds(random, choosePacket(random), ids)),
    // After the signature and the encryption.
    damage: (bytes) => (random.chance(0.02) ? mutateBytes(random, how, bytes) : bytes),
  };
}

/** @returns {PacketCase} */
function signIn(/** @type {Random} */ random, /** @type {string[]} */ how) {
  const changed = random.oneOf(['first token', 'second token', 'proved part', 'both tokens']);
  how.push(changed);
  let tokens = 0;
  return {
    stage: 'sign-in',
    how,
    isWrapped: random.chance(0.6),
    changeToken: (token) => {
      tokens++;
      const isChanged = changed === 'both tokens' || changed === (tokens === 1 ? 'first token' : 'second token');
      return isChanged ? mutateBytes(random, how, token) : token;
    },
    changeProved: (part) => (changed === 'proved part' ? mutateBytes(random, how, part) : part),
  };
}

/** Commands are equally frequent; some packets are compounds. */
function choosePacket(/** @type {Random} */ random) {
  if (random.chance(0.05)) return Buffer.from(random.oneOf(forPipe));
  if (random.chance(0.06)) return Buffer.from(random.oneOf(withContexts));
  const one = () => Buffer.from(random.oneOf(random.chance(0.01) ? endings : random.oneOf(byCommand)));
  if (random.chance(0.85)) return one();
  const count = random.chance(0.98) ? 2 + random.below(4) : random.below(COMPOUND_MAX);
  return compoundOf(Array.from({ length: count + 1 }, one), random.chance(0.6));
}

function compoundOf(/** @type {readonly Buffer[]} */ packets, /** @type {boolean} */ isRelated) {
  const messages = packets.flatMap((packet) => messagesOf(packet).map(({ start, end }) => packet.subarray(start, end)));
  return Buffer.concat(
    messages.map((message, index) => {
      const isLast = index === messages.length - 1;
      const padded = Buffer.concat([message, Buffer.alloc(isLast ? 0 : -message.length & 7)]);
      padded.writeUInt32LE(isLast ? 0 : padded.length, NEXT_AT);
      if (isRelated && index > 0) padded.writeUInt32LE((padded.readUInt32LE(FLAGS_AT) | RELATED) >>> 0, FLAGS_AT);
      return padded;
    }),
  );
}

/** A header's ids are valid before the mutations, so that most packets reach a handler. */
export function fillIds(/** @type {Random} */ random, /** @type {Buffer} */ packet, /** @type {Ids} */ ids) {
  let { nextMessageId } = ids;
  const isPipe = isForPipe(packet);
  for (const { start, end, command } of messagesOf(packet)) {
    const message = packet.subarray(start, end);
    message.writeBigUInt64LE(nextMessageId, MESSAGE_ID_AT);
    if (command !== COMMAND.cancel) nextMessageId += BigInt(Math.max(1, message.readUInt16LE(CREDIT_CHARGE_AT)));
    message.writeUInt32LE(isPipe ? ids.pipeTreeId : ids.treeId, TREE_ID_AT);
    message.writeBigUInt64LE(ids.sessionId, SESSION_ID_AT);
    message.writeUInt32LE((message.readUInt32LE(FLAGS_AT) & ~SIGNED) >>> 0, FLAGS_AT);
    message.fill(0, 48, HEADER_BYTES);
    const fileIdAt = HEADER_BYTES + (FILE_ID_AT[command] ?? message.length);
    if (fileIdAt + 16 > message.length) continue;
    if (isPipe) ids.pipeId.copy(message, fileIdAt);
    else if (random.chance(0.95)) random.oneOf(ids.fileIds).copy(message, fileIdAt);
  }
  return packet;
}

function mutate(/** @type {Random} */ random, /** @type {string[]} */ how, /** @type {Buffer} */ packet) {
  if (random.chance(0.05)) return packet;
  const others = [fieldMutations, byteMutations, headerMutations];
  for (let left = random.chance(0.6) ? 1 : 2 + random.below(3); left > 0; left--) {
    packet = mutateBy(random, how, packet, random.chance(0.8) ? fieldMutations : random.oneOf(others));
  }
  return packet;
}

function mutateBytes(/** @type {Random} */ random, /** @type {string[]} */ how, /** @type {Buffer} */ bytes) {
  for (let left = 1 + random.below(3); left > 0; left--) bytes = mutateBy(random, how, bytes, byteMutations);
  return bytes;
}

function mutateBy(
  /** @type {Random} */ random,
  /** @type {string[]} */ how,
  /** @type {Buffer} */ bytes,
  /** @type {import('./mutations.mjs').Mutations} */ mutations,
) {
  const [name, by] = random.oneOf(Object.entries(mutations));
  how.push(name);
  return by(random, bytes);
}
