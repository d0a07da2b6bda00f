/**
 * Fuzzer of SMB: sends mutated packets over several connections, before and after sign-in, while another client works. After each packet the
 * server answers an ECHO on that connection or has ended the connection; everything else is a fault.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { importTypeScript } from '../../scripts/import-typescript.mjs';
import { makePacketCase, negotiatePacket } from './cases.mjs';
import { startServer } from './server.mjs';

const CONNECTIONS = 8;
const TIMEOUT_MILLISECONDS = 10_000;
/** Connections before sign-in: a refused sign-in is answered late. */
const UNSIGNED_MAX = 100;
const FAULTS_MAX = 10;
/** Cases after which the share is emptied, and memory is measured. */
const BATCH = 5_000;
const GROWTH_BYTES_MAX = 160 * 2 ** 20;
const ECHO = 13;

/** @typedef {{ number: number | undefined, what: string, how?: readonly string[], packet?: string }} Found */

/** @param {{ seed: number, count: number, first?: number, onProgress?: (done: number) => void }} options */
export async function play({ seed, count, first = 0, onProgress }) {
  const { SmbClient, ACCESS, SHARE, DISPOSITION, echoBody } = await importTypeScript(
    'test/malformed-packets/session.ts',
  );
  const server = await startServer();
  const address = { host: '127.0.0.1', ...server };
  /** @type {Found[]} */
  const faults = [];
  /** @type {Map<string, number>} */
  const seen = new Map();
  /** @type {number[]} */
  const memory = [];
  let next = first;
  /** Each has a file of its own, which mutated packets may delete. */
  let sessions = 0;
  let isOver = false;
  /** @type {Set<Promise<void>>} */
  const unsigned = new Set();
  const notice = (/** @type {string} */ word) => seen.set(word, (seen.get(word) ?? 0) + 1);

  const openSession = async () => {
    const client = await SmbClient.connect(address);
    const shared = { share: SHARE.read | SHARE.write | SHARE.delete };
    const access = ACCESS.read | ACCESS.write | ACCESS.delete;
    const file = await client.open(`target-${sessions++}.txt`, { ...shared, access, disposition: DISPOSITION.openIf });
    const folder = await client.open('', { ...shared, access: ACCESS.read, isDirectory: true });
    return { client, fileIds: [file, folder].map(bytesOfFileId) };
  };

  /** A packet of a session, and an ECHO after it. */
  const tryInSession = async (/** @type {any} */ session, /** @type {number} */ number) => {
    const { client, fileIds } = session;
    const { sessionId, treeId } = client;
    const ids = {
      takeMessageIds: (/** @type {number} */ count) => client.takeMessageIds(count),
      sessionId,
      treeId,
      fileIds,
    };
    const one = makePacketCase(seed, number, ids);
    if (one.stage !== 'session') {
      if (unsigned.size >= UNSIGNED_MAX) await Promise.race(unsigned);
      const attempt = tryUnsigned(one, number).finally(() => unsigned.delete(attempt));
      unsigned.add(attempt);
      return { one, isAlive: true };
    }
    client.socket.write(Buffer.concat([one.prefix, one.packet]));
    if (one.prefix.readUIntBE(1, 3) !== one.packet.length) {
      client.end();
      return { one, isAlive: false };
    }
    const outcome = await withTimeout(
      client.request(ECHO, echoBody, {}).then(
        () => 'answers',
        (/** @type {Error} */ error) => (client.socket.destroyed ? 'ended' : `ECHO: ${error.message}`),
      ),
    );
    notice(outcome);
    return {
      one,
      isAlive: outcome === 'answers',
      fault: outcome === 'late' ? 'neither an answer nor an end' : undefined,
    };
  };

  /** A packet before sign-in: the server ends the connection, at latest when the client does. */
  const tryUnsigned = async (/** @type {import('./cases.mjs').PacketCase} */ one, /** @type {number} */ number) => {
    const socket = connect(server.port, '127.0.0.1');
    socket.on('error', () => {}).resume();
    const closed = once(socket, 'close').then(() => 'ended');
    if (one.stage === 'negotiated') socket.write(Buffer.concat([lengthPrefix(negotiatePacket), negotiatePacket]));
    socket.end(Buffer.concat([one.prefix, one.packet]));
    const outcome = await withTimeout(closed);
    socket.destroy();
    notice(`before sign-in: ${outcome}`);
    if (outcome !== 'late') return;
    const what = 'the connection stays open although the client has ended it';
    faults.push({ number, what, how: one.how, packet: one.packet.toString('hex') });
  };

  const worker = async (/** @type {number} */ to) => {
    let session = await openSession();
    while (next < to && faults.length < FAULTS_MAX && !server.end()) {
      const number = next++;
      try {
        const { one, isAlive, fault } = await tryInSession(session, number);
        if (fault) faults.push({ number, what: fault, how: one.how, packet: one.packet.toString('hex') });
        if (isAlive) continue;
      } catch (error) {
        faults.push({ number, what: String(error) });
      }
      session.client.end();
      if (!server.end()) session = await openSession();
    }
    session.client.end();
  };

  try {
    await server.prepare();
    const undisturbed = watch(
      { ...address, share: server.watchedShare },
      SmbClient,
      { ACCESS, SHARE, DISPOSITION },
      () => isOver,
    );
    while (next < first + count && faults.length < FAULTS_MAX && !server.end()) {
      const to = Math.min(next + BATCH, first + count);
      await Promise.all(Array.from({ length: CONNECTIONS }, () => worker(to)));
      await Promise.all(unsigned);
      await server.prepare();
      memory.push(await server.memoryBytes());
      onProgress?.(next - first);
    }
    isOver = true;
    notice(`opens of another client: ${await undisturbed}`);
    const early = Math.max(...memory.slice(0, 3));
    const late = memory.at(-1) ?? 0;
    if (late > early + GROWTH_BYTES_MAX)
      faults.push({ number: undefined, what: `memory grew from ${early} to ${late} bytes` });
  } catch (error) {
    faults.push({ number: undefined, what: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
  isOver = true;
  if (server.end()) faults.push({ number: undefined, what: `the server ended: ${JSON.stringify(server.end())}` });
  if (/internal error|\bat .*\.js:\d+/.test(server.output()))
    faults.push({ number: undefined, what: 'the log has a bug' });
  await server.stop();
  return { faults, done: Math.min(next - first, count), seen, memory, output: server.output() };
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

/** @param {{ persistent: bigint, volatile: bigint }} fileId */
function bytesOfFileId({ persistent, volatile: other }) {
  const bytes = Buffer.alloc(16);
  bytes.writeBigUInt64LE(persistent, 0);
  bytes.writeBigUInt64LE(other, 8);
  return bytes;
}

/** @param {Buffer} packet */
function lengthPrefix(packet) {
  const prefix = Buffer.alloc(4);
  prefix.writeUIntBE(packet.length, 1, 3);
  return prefix;
}

/** @param {Promise<string>} outcome */
async function withTimeout(outcome) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(() => resolve('late'), TIMEOUT_MILLISECONDS);
  });
  try {
    return /** @type {string} */ (await Promise.race([outcome, late]));
  } finally {
    clearTimeout(timer);
  }
}
