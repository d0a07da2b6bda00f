/** A large blob up and down, slow uploaders beside it, and 512 MB for the server: nothing may go wrong. */
import { Readable } from 'node:stream';
import { crc32 } from 'node:zlib';
import { BlobServiceClient } from '@azure/storage-blob';
import { bound, settle } from '../support/extent-usage.mjs';
import { bytesOf } from '../support/seeded-bytes.mjs';
import { startServer } from '../support/server-process.mjs';
import { connect } from '../support/signed-client.mjs';
import { memoryGroup } from './memory-group.mjs';
import { startSlowUploaders } from './slow-uploaders.mjs';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const LIMIT_BYTES = 512e6;
const BLOCK_BYTES = 8 * MIB;
const BLOCKS_AT_A_TIME = 4;
const SLOW_UPLOADERS = 1_000;

/**
 * @param {{ location: string, gib: number, seed: number, print: (line: string) => void }} options
 * @returns {Promise<string[]>} what is wrong
 */
export async function memory({ location, gib, seed, print }) {
  const group = memoryGroup(LIMIT_BYTES);
  if ('fault' in group) {
    print(`SKIPPED: ${group.fault}`);
    return [];
  }
  const { before, use, remove } = group;
  let anonymousPeak = 0;
  const watch = setInterval(() => {
    anonymousPeak = Math.max(anonymousPeak, use().anonymous);
  }, 200);
  /** @type {string[]} */
  const faults = [];
  try {
    const server = await startServer(location, { flags: ['--log-level', 'warn'], before });
    const end = () => server.signal('SIGKILL');
    process.once('exit', end);
    faults.push(...(await load(server, { location, gib, seed, print: (line) => print(`${line}, ${used()}`) })));
    if (faults.length > 0) print(server.stdout() + server.stderr());
    const { code, signal } = await server.kill('SIGTERM');
    if (code !== 0) faults.push(`the server ended with ${code ?? signal}`);
    process.off('exit', end);
  } catch (error) {
    faults.push(String(error));
  }
  clearInterval(watch);
  print(`in the cgroup of ${megabytes(LIMIT_BYTES)}: ${used()}`);
  const { kills } = use();
  if (kills > 0) faults.unshift('the server was killed for want of memory');
  remove();
  return faults;

  function used() {
    const { peak, anonymous, limitHits } = use();
    anonymousPeak = Math.max(anonymousPeak, anonymous);
    const rss = `rss ${megabytes(anonymous)}, at most ${megabytes(anonymousPeak)}`;
    return `${rss}; with page cache at most ${megabytes(peak)}, limit met ${limitHits} times`;
  }
}

/**
 * @param {Awaited<ReturnType<typeof startServer>>} server
 * @param {Parameters<typeof memory>[0]} options
 */
async function load(server, { location, gib, seed, print }) {
  const string = /connection string\s+(\S+)/.exec(server.stdout())?.[1] ?? '';
  const service = BlobServiceClient.fromConnectionString(string, { retryOptions: { maxTries: 1 } });
  await service.createContainer('large');
  await service.createContainer('slow');
  const blob = service.getContainerClient('large').getBlockBlobClient('blob');
  const blocks = Math.ceil((gib * GIB) / BLOCK_BYTES);
  /** @type {number[]} By block; the bytes themselves are made when they are sent, and not kept. */
  const checksums = [];

  const slow = await startSlowUploaders(server.origin, 'slow', SLOW_UPLOADERS);
  print(`${SLOW_UPLOADERS} slow uploaders are there`);
  try {
    const up = progress('uploaded', print);
    await blob.uploadStream(Readable.from(content(up.block)), BLOCK_BYTES, BLOCKS_AT_A_TIME);
    const down = progress('downloaded', print);
    const { readableStreamBody, contentLength } = await blob.download(0, undefined, { maxRetryRequests: 0 });
    if (contentLength !== blocks * BLOCK_BYTES) return [`the blob has ${contentLength} bytes`];
    const wrong = await wrongBlock(/** @type {NodeJS.ReadableStream} */ (readableStreamBody), down.block);
    if (wrong !== undefined) return [wrong];
    return [...slow.faults(), ...(await afterwards())];
  } catch (error) {
    return [String(error), ...slow.faults()];
  } finally {
    slow.vanish();
  }

  /** @param {() => void} onBlock */
  async function* content(onBlock) {
    for (let at = 0; at < blocks; at++) {
      const bytes = bytesOf(`${seed}-${at}`, BLOCK_BYTES);
      checksums.push(crc32(bytes));
      yield bytes;
      onBlock();
    }
  }

  /** @param {NodeJS.ReadableStream} body @param {() => void} onBlock */
  async function wrongBlock(body, onBlock) {
    let checksum = 0;
    let at = 0;
    let length = 0;
    for await (const chunk of body) {
      for (let rest = Buffer.from(chunk); rest.length > 0; ) {
        const part = rest.subarray(0, BLOCK_BYTES - length);
        rest = rest.subarray(part.length);
        checksum = crc32(part, checksum);
        length += part.length;
        if (length < BLOCK_BYTES) continue;
        if (checksum !== checksums[at]) return `block ${at} of the download has other bytes`;
        [checksum, length] = [0, 0];
        at++;
        onBlock();
      }
    }
    return at === blocks && length === 0 ? undefined : `the download ended in block ${at}`;
  }

  /** Slow clients that disconnect leave nothing in memory. */
  async function afterwards() {
    slow.vanish();
    const client = connect(server.origin);
    const { status, body } = await client.send('GET', '/slow?restype=container&comp=list&include=uncommittedblobs');
    client.close();
    const live = blocks * BLOCK_BYTES;
    const { bytes, seconds, settled } = await settle(location, live);
    print(
      `the slow ones have vanished: extents ${megabytes(bytes)} for ${megabytes(live)} after ${seconds.toFixed(1)} s`,
    );
    const faults = settled ? [] : [`the extents take more than ${megabytes(bound(live))}`];
    if (status !== 200 || body.includes('<Name>')) faults.push(`a slow uploader left something: ${status} ${body}`);
    return faults;
  }
}

/** @param {string} verb @param {(line: string) => void} print */
function progress(verb, print) {
  const started = performance.now();
  let bytes = 0;
  return {
    block() {
      bytes += BLOCK_BYTES;
      const rate = bytes / ((performance.now() - started) / 1000);
      if (bytes % GIB === 0) print(`${verb} ${bytes / GIB} GiB, ${megabytes(rate)}/s`);
    },
  };
}

/** @param {number} bytes */
function megabytes(bytes) {
  return `${Math.round(bytes / 1e6)} MB`;
}
