/** A file of more than 4 GiB through smbclient and over REST, both ways: the bytes are compared by their hash. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { bytesOf } from '../support/seeded-bytes.mjs';
import { startHoldfastSmb } from '../support/smb-target.mjs';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const RANGE_BYTES = 4 * MIB;

/**
 * @param {{ location: string, gib: number, seed: number, print: (line: string) => void }} options
 * @returns {Promise<string[]>} what is wrong
 */
export async function smb({ location, gib, seed, print }) {
  const server = await startHoldfastSmb({ location });
  const root = server.shares.getShareClient(server.share).rootDirectoryClient;
  const blocks = Math.ceil((gib * GIB) / RANGE_BYTES) + 1;
  const bySmb = root.getFileClient('by-smb');
  const byRest = root.getFileClient('by-rest');
  /** @type {string[]} */
  const faults = [];
  try {
    const sent = createHash('sha256');
    const upload = smbclient('put - by-smb');
    await Promise.all([pipeline(Readable.from(content((bytes) => sent.update(bytes))), upload.stdin), upload.ended]);
    const expected = sent.digest('hex');
    print(`${blocks * RANGE_BYTES} bytes put by SMB`);
    compare('REST of what SMB wrote', expected, await hashOfRest(bySmb));
    compare('SMB of what SMB wrote', expected, await hashOfSmb('by-smb'));
    await byRest.create(blocks * RANGE_BYTES);
    let at = 0;
    for (const bytes of content()) {
      await byRest.uploadRange(bytes, at, bytes.length);
      at += bytes.length;
    }
    print(`${at} bytes put over REST`);
    compare('SMB of what REST wrote', expected, await hashOfSmb('by-rest'));
  } catch (error) {
    faults.push(String(error));
  }
  await server.stop();
  return faults;

  function* content(onBlock = (/** @type {Buffer} */ _bytes) => {}) {
    for (let block = 0; block < blocks; block++) {
      const bytes = bytesOf(`${seed}-${block}`, RANGE_BYTES);
      onBlock(bytes);
      yield bytes;
    }
  }

  /** @param {string} what @param {string} expected @param {string} found */
  function compare(what, expected, found) {
    print(`${what}: ${found === expected ? 'the same bytes' : 'OTHER BYTES'}`);
    if (found !== expected) faults.push(`${what}: other bytes`);
  }

  /** @param {typeof bySmb} file */
  async function hashOfRest(file) {
    const hash = createHash('sha256');
    const { readableStreamBody } = await file.download();
    for await (const bytes of /** @type {NodeJS.ReadableStream} */ (readableStreamBody)) hash.update(bytes);
    return hash.digest('hex');
  }

  /** @param {string} name */
  async function hashOfSmb(name) {
    const hash = createHash('sha256');
    const download = smbclient(`get ${name} -`);
    for await (const bytes of download.stdout) hash.update(bytes);
    await download.ended;
    return hash.digest('hex');
  }

  /** @param {string} commands */
  function smbclient(commands) {
    const { port, share, user, password } = server;
    const words = [`//127.0.0.1/${share}`, '-p', String(port), '-U', `${user}%${password}`, '-c', commands];
    const child = spawn('smbclient', words, { stdio: ['pipe', 'pipe', 'pipe'] });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
    const ended = once(child, 'close').then(([code]) => {
      if (code !== 0) throw new Error(`smbclient ${commands}: ${code} ${said.slice(-300)}`);
    });
    ended.catch(() => {});
    return { stdin: child.stdin, stdout: child.stdout, ended };
  }
}
