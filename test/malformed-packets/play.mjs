/**
 * Fuzzer of SMB: sends mutated packets before, during and after sign-in, in sessions of every dialect, signed and encrypted, while another client
 * works. The server answers each packet or ends its connection; everything else is a fault.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { importTypeScript } from '../../scripts/import-typescript.mjs';
import { randomOf } from '../support/random.mjs';
import { bindPacket, fillIds, makePacketCase, negotiatePacket } from './cases.mjs';
import { COMMAND, CREDIT_CHARGE_AT, MESSAGE_ID_AT, messagesOf } from './message-fields.mjs';
import { startServer } from './server.mjs';

const TIMEOUT_MILLISECONDS = 20_000;
/** Connections before sign-in: a refused sign-in is answered late, and the server limits how many an address may have. */
const LOCAL_ADDRESSES = process.platform === 'linux' ? ['127.0.0.2', '127.0.0.3', '127.0.0.4'] : ['127.0.0.1'];
const UNSIGNED_PER_ADDRESS = 70;
const FAULTS_MAX = 10;
/** Cases after which the share is emptied, and memory is measured. */
const BATCH = 10_000;
/** What the first batches may differ from the last. */
const GROWTH_BYTES_MAX = 64 * 2 ** 20;
const WARM_BATCHES = 4;
/** Answers after which a session proves little: its session, tree or opens are gone. */
const LOST = new Set(['STATUS_USER_SESSION_DELETED', 'STATUS_NETWORK_NAME_DELETED']);

/** @typedef {{ number: number | undefined, what: string, how?: readonly string[], packet?: string | undefined }} Found */

/** @param {{ seed: number, count: number, first?: number, onProgress?: (done: number) => void }} options */
export async function play({ seed, count, first = 0, onProgress }) {
  const { FuzzSession, kinds, signInChanged, SmbClient, ...constants } = await importTypeScript(
    'test/malformed-packets/session.ts',
  );
  const server = await startServer();
  /** @type {Found[]} */
  const faults = [];
  /** @type {Map<string, number>} */
  const seen = new Map();
  /** @type {number[]} */
  const memory = [];
  let done = 0;
  /** Each has a file of its own, which mutated packets may delete. */
  let sessions = 0;
  /** @type {Set<Promise<void>>} */
  const unsigned = new Set();
  const notice = (/** @type {string} */ word) => seen.set(word, (seen.get(word) ?? 0) + 1);
  const isOver = () => faults.length >= FAULTS_MAX || server.end() !== undefined;
  const report = (/** @type {number} */ number, /** @type {Partial<Found>} */ found) =>
    faults.push({ number, what: 'unknown', ...found });

  const openSession = async (/** @type {number} */ kind) => {
    const session = await FuzzSession.open(server, kinds[kind], `target-${sessions++}.txt`);
    const bind = fillIds(randomOf(1), Buffer.from(bindPacket), session.ids);
    await sendPacket(session, bind, (bytes) => bytes);
    return session;
  };

  /** Returns the statuses of the answer; empty: the server has ended the connection; undefined: it has done neither. */
  const sendPacket = async (
    /** @type {any} */ session,
    /** @type {Buffer} */ packet,
    /** @type {(bytes: Buffer) => Buffer} */ damage,
  ) => {
    const { connection } = session;
    const sent = damage(session.protect(packet));
    // The ids as the server reads them.
    const read = session.isEncrypted ? packet : sent;
    let answeredId;
    for (const { start, command } of messagesOf(read)) {
      const messageId = read.readBigUInt64LE(start + MESSAGE_ID_AT);
      if (command === COMMAND.cancel) continue;
      answeredId ??= messageId;
      if (messageId !== connection.nextMessageId) continue;
      connection.nextMessageId += BigInt(Math.max(1, read.readUInt16LE(start + CREDIT_CHARGE_AT)));
    }
    session.send(sent);
    return withTimeout(
      answeredId === undefined
        ? connection.echo().then(
            (/** @type {any} */ answer) => [answer.status],
            () => [],
          )
        : answerOf(connection, answeredId),
    );
  };

  /** A packet of a session. @returns {Promise<'goes on' | 'reopen' | 'lost'>} */
  const tryInSession = async (
    /** @type {any} */ session,
    /** @type {Extract<import('./cases.mjs').PacketCase, { stage: 'session' }>} */ one,
    /** @type {number} */ number,
  ) => {
    const packet = one.makePacket(session.ids);
    const hex = packet.toString('hex');
    const statuses = await sendPacket(session, packet, one.damage);
    if (statuses === undefined) {
      report(number, { what: 'neither an answer nor an end', how: one.how, packet: hex });
      return 'lost';
    }
    if (statuses.length === 0) {
      notice('ended');
      return 'lost';
    }
    for (const status of statuses) notice(status);
    if (statuses.includes('STATUS_INTERNAL_ERROR'))
      report(number, { what: 'an internal error', how: one.how, packet: hex });
    if (statuses.some((/** @type {string} */ status) => LOST.has(status))) return 'lost';
    return statuses.includes('STATUS_FILE_CLOSED') ? 'reopen' : 'goes on';
  };

  /** Something before sign-in: the server ends the connection, at latest when the client does. */
  const tryUnsigned = async (
    /** @type {Exclude<import('./cases.mjs').PacketCase, { stage: 'session' }>} */ one,
    /** @type {number} */ number,
  ) => {
    const localAddress = LOCAL_ADDRESSES[number % LOCAL_ADDRESSES.length];
    const outcome = await withTimeout(
      one.stage === 'sign-in'
        ? signInChanged(server, kinds[number % kinds.length], { ...one, localAddress }).then(
            (/** @type {string | undefined} */ status) => status ?? 'ended',
          )
        : sendAlone(one, server.port, localAddress),
    );
    if (outcome) notice(`${one.stage}: ${outcome}`);
    else {
      const packet = one.stage === 'sign-in' ? undefined : one.packet.toString('hex');
      report(number, { what: 'neither an answer nor an end before sign-in', how: one.how, packet });
    }
    if (outcome?.includes('INTERNAL_ERROR')) report(number, { what: 'an internal error before sign-in', how: one.how });
  };

  const startUnsigned = async (/** @type {any} */ one, /** @type {number} */ number) => {
    if (unsigned.size >= UNSIGNED_PER_ADDRESS * LOCAL_ADDRESSES.length) await Promise.race(unsigned);
    const attempt = tryUnsigned(one, number)
      .catch((error) => report(number, { what: String(error), how: one.how }))
      .then(() => void unsigned.delete(attempt));
    unsigned.add(attempt);
  };

  /** Those of the cases whose numbers mean this kind of session. */
  const worker = async (/** @type {number} */ kind, /** @type {number} */ from, /** @type {number} */ to) => {
    let session = await openSession(kind);
    for (let number = from; number < to && !isOver(); number++) {
      if (number % kinds.length !== kind) continue;
      const one = makePacketCase(seed, number);
      done++;
      if (one.stage !== 'session') {
        await startUnsigned(one, number);
        continue;
      }
      let outcome = await tryInSession(session, one, number);
      if (outcome === 'reopen')
        outcome = await session.openFiles().then(
          () => 'goes on',
          () => 'lost',
        );
      if (outcome !== 'lost') continue;
      session.connection.close();
      if (!isOver()) session = await openSession(kind);
    }
    session.connection.close();
  };

  let isThrough = false;
  try {
    await server.prepare();
    const undisturbed = watch(
      { host: '127.0.0.1', ...server, share: server.watchedShare },
      SmbClient,
      constants,
      () => isThrough,
    );
    undisturbed.catch(() => undefined);
    for (let from = first; from < first + count && !isOver(); from += BATCH) {
      const to = Math.min(from + BATCH, first + count);
      await Promise.all(
        kinds.map((/** @type {unknown} */ _kind, /** @type {number} */ kind) => worker(kind, from, to)),
      );
      await Promise.all(unsigned);
      await server.prepare();
      memory.push(await server.memoryBytes());
      onProgress?.(done);
    }
    isThrough = true;
    notice(`opens of another client: ${await undisturbed}`);
    const early = Math.max(...memory.slice(0, WARM_BATCHES));
    const late = memory.at(-1) ?? 0;
    if (late > early + GROWTH_BYTES_MAX)
      faults.push({ number: undefined, what: `memory grew from ${early} to ${late} bytes` });
  } catch (error) {
    faults.push({ number: undefined, what: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
  isThrough = true;
  if (server.end()) faults.push({ number: undefined, what: `the server ended: ${JSON.stringify(server.end())}` });
  if (/internal error|\bat .*\.js:\d+/.test(server.output()))
    faults.push({ number: undefined, what: 'the log has a bug' });
  await server.stop();
  return { faults, done, seen, memory, output: server.output() };
}

/** Statuses of the answer with this id; empty: the server has ended the connection. */
async function answerOf(/** @type {any} */ connection, /** @type {bigint} */ messageId) {
  for (;;) {
    const answers = await connection.receive();
    if (!answers) return [];
    const isPending = answers.every((/** @type {any} */ answer) => answer.status === 'STATUS_PENDING');
    const isIt = answers.some((/** @type {any} */ answer) => answer.header.messageId === messageId);
    if (isIt && !isPending) return answers.map((/** @type {any} */ answer) => answer.status);
  }
}

async function sendAlone(
  /** @type {{ stage: string, packet: Buffer }} */ { stage, packet },
  /** @type {number} */ port,
  /** @type {string | undefined} */ localAddress,
) {
  const socket = connect({ port, host: '127.0.0.1', ...(localAddress && { localAddress }) });
  socket.on('error', () => {}).resume();
  const closed = once(socket, 'close').then(() => 'ended');
  if (stage === 'negotiated') socket.write(framed(negotiatePacket));
  socket.end(framed(packet));
  return closed;
}

/** Another client, which opens and closes a file of its own all the time, and must succeed. Returns how often it did. */
async function watch(address, SmbClient, { ACCESS, SHARE, DISPOSITION }, isOver) {
  const client = await SmbClient.connect(address);
  let times = 0;
  while (!isOver()) {
    const opened = client.open('watched.txt', {
      access: ACCESS.read | ACCESS.write,
      share: SHARE.none,
      disposition: DISPOSITION.openIf,
    });
    await client.close(await opened);
    times++;
    await sleep(10);
  }
  client.end();
  return times;
}

/** @param {Buffer} packet */
function framed(packet) {
  const prefix = Buffer.alloc(4);
  prefix.writeUIntBE(packet.length, 1, 3);
  return Buffer.concat([prefix, packet]);
}

/** Undefined after the time. @template T @param {Promise<T>} outcome @returns {Promise<T | undefined>} */
async function withTimeout(outcome) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(() => resolve(undefined), TIMEOUT_MILLISECONDS);
  });
  try {
    return /** @type {T | undefined} */ (await Promise.race([outcome, late]));
  } finally {
    clearTimeout(timer);
  }
}
