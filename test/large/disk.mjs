/**
 * A disk image of 1 GiB as a page blob: random writes of several clients, and a snapshot every second. Afterwards each snapshot is compared
 * byte for byte with the writes up to its ETag, and the space of deleted snapshots must come back. So must that of chunks of which 512 bytes are still
 * visible, whether the others were overwritten or cleared.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { bound, settle } from '../support/extent-usage.mjs';
import { randomOf } from '../support/random.mjs';
import { bytesOf } from '../support/seeded-bytes.mjs';
import { checkFolder, startServer } from '../support/server-process.mjs';
import { connect } from '../support/signed-client.mjs';

const MIB = 2 ** 20;
const PAGE = 512;
const IMAGE_BYTES = 1024 * MIB;
const FILLED_BYTES = 4 * MIB;
const COMPARED_BYTES = 16 * MIB;
const WRITERS = 8;
const PATH = '/disks/image.vhd';

/**
 * @param {{ location: string, seconds: number, seed: number, print: (line: string) => void }} options
 * @returns {Promise<string[]>} what is wrong
 */
export async function disk({ location, seconds, seed, print }) {
  const server = await startServer(location, { flags: ['--log-level', 'warn'] });
  const end = () => server.signal('SIGKILL');
  process.once('exit', end);
  const client = connect(server.origin);
  /** @type {string[]} */
  const faults = [];
  try {
    await run();
  } catch (error) {
    faults.push(String(error));
  }
  client.close();
  if (faults.length > 0) print(server.stdout() + server.stderr());
  const { code } = await server.kill('SIGTERM');
  process.off('exit', end);
  if (code !== 0) faults.push(`the server ended with ${code}`);
  const checked = await checkFolder(location);
  print(checked.text.trim());
  if (checked.code !== 0) faults.push('holdfast check found something');
  return faults;

  /** @param {string} method @param {string} target @param {number} status @param {Parameters<typeof client.send>[2]} [options] */
  async function must(method, target, status, options) {
    const answer = await client.send(method, target, options);
    if (answer.status !== status)
      throw new Error(`${method} ${target}: ${answer.status} ${answer.body.subarray(0, 300)}`);
    return answer;
  }

  /** @param {number} from @param {Buffer} body @returns {Promise<string>} the ETag */
  async function write(from, body) {
    const range = `bytes=${from}-${from + body.length - 1}`;
    const headers = { 'x-ms-page-write': 'update', 'x-ms-range': range };
    return String((await must('PUT', `${PATH}?comp=page`, 201, { headers, body })).headers.etag);
  }

  async function run() {
    await client.createContainer('disks');
    const headers = { 'x-ms-blob-type': 'PageBlob', 'x-ms-blob-content-length': String(IMAGE_BYTES) };
    await must('PUT', PATH, 201, { headers });
    const image = Buffer.alloc(IMAGE_BYTES);
    for (let from = 0; from < IMAGE_BYTES; from += FILLED_BYTES) {
      bytesOf('image', FILLED_BYTES, from).copy(image, from);
      await write(from, image.subarray(from, from + FILLED_BYTES));
    }
    /** @type {{ etag: string, from: number, length: number, content: string }[]} */
    const writes = [];
    /** @type {{ etag: string, moment: string }[]} */
    const snapshots = [];
    let isOver = false;
    const writers = Array.from({ length: WRITERS }, async (_, number) => {
      const random = randomOf(seed + number);
      for (let at = 0; !isOver; at++) {
        const length = PAGE * (random.chance(0.8) ? 1 + random.below(16) : 1 + random.below(512));
        const from = PAGE * random.below((IMAGE_BYTES - length) / PAGE);
        const content = `${seed} ${number} ${at}`;
        writes.push({ etag: await write(from, bytesOf(content, length)), from, length, content });
      }
    });
    for (let second = 0; second < seconds; second++) {
      await pause(1_000);
      const { headers } = await must('PUT', `${PATH}?comp=snapshot`, 201);
      snapshots.push({ etag: String(headers.etag), moment: String(headers['x-ms-snapshot']) });
    }
    isOver = true;
    await Promise.all(writers);
    const written = writes.reduce((sum, { length }) => sum + length, 0);
    print(`${writes.length} writes of ${mebibytes(written)}, ${snapshots.length} snapshots in ${seconds} s`);

    // ETags rise with every write and have one length, so that they compare as text.
    writes.sort((one, other) => (one.etag < other.etag ? -1 : 1));
    for (const { etag, moment } of snapshots) {
      advance(etag);
      await compare(`snapshot ${moment}`, `${PATH}?snapshot=${encodeURIComponent(moment)}`);
    }
    advance(undefined);
    await compare('the image', PATH);
    const every = await settle(location, IMAGE_BYTES + written);
    print(`extents ${mebibytes(every.bytes)} with all snapshots, at most ${mebibytes(bound(IMAGE_BYTES + written))}`);
    if (!every.settled) faults.push('the extents take more than the image and all writes');
    for (const { moment } of snapshots) await must('DELETE', `${PATH}?snapshot=${encodeURIComponent(moment)}`, 202);
    const { bytes, seconds: waited, settled } = await settle(location, IMAGE_BYTES);
    print(`extents ${mebibytes(bytes)} without them, after ${waited.toFixed(1)} s`);
    if (!settled) faults.push('the space of the snapshots does not come back');
    await compare('the image at last', PATH);
    await overwriteAllButOnePage();
    await clearAllButOnePage();

    /** Of each MiB the first page is left, in a chunk that had all of it: without merges there would be two images. */
    async function overwriteAllButOnePage() {
      for (let from = 0; from < IMAGE_BYTES; from += MIB) {
        bytesOf('overwritten', MIB - PAGE, from).copy(image, from + PAGE);
        await write(from + PAGE, image.subarray(from + PAGE, from + MIB));
      }
      const { bytes, seconds: waited, settled } = await settle(location, IMAGE_BYTES);
      print(`extents ${mebibytes(bytes)} with 512 bytes left of each chunk, after ${waited.toFixed(1)} s`);
      if (!settled) faults.push('the space of overwritten pages does not come back');
      await compare('the overwritten image', PATH);
    }

    /** Half a MiB is left of the image, one page in each MiB. */
    async function clearAllButOnePage() {
      for (let from = 0; from < IMAGE_BYTES; from += MIB) {
        const range = `bytes=${from + PAGE}-${from + MIB - 1}`;
        await must('PUT', `${PATH}?comp=page`, 201, { headers: { 'x-ms-page-write': 'clear', 'x-ms-range': range } });
        image.fill(0, from + PAGE, from + MIB);
      }
      const left = (IMAGE_BYTES / MIB) * PAGE;
      const { bytes, seconds: waited, settled } = await settle(location, left);
      print(
        `extents ${mebibytes(bytes)} for ${left / 1_024} KiB, at most ${mebibytes(bound(left))}, after ${waited.toFixed(1)} s`,
      );
      if (!settled) faults.push('the space of cleared pages does not come back');
      await compare('the cleared image', PATH);
    }

    /** Applies the writes up to this ETag. @param {string | undefined} etag undefined: all */
    function advance(etag) {
      while (writes[0] && (etag === undefined || writes[0].etag <= etag)) {
        const { from, length, content } = /** @type {(typeof writes)[number]} */ (writes.shift());
        bytesOf(content, length).copy(image, from);
      }
    }

    /** @param {string} what @param {string} target */
    async function compare(what, target) {
      for (let from = 0; from < IMAGE_BYTES; from += COMPARED_BYTES) {
        const headers = { 'x-ms-range': `bytes=${from}-${from + COMPARED_BYTES - 1}` };
        const { body } = await must('GET', target, 206, { headers });
        if (!body.equals(image.subarray(from, from + COMPARED_BYTES))) faults.push(`${what} differs after ${from}`);
      }
    }
  }
}

/** @param {number} bytes */
function mebibytes(bytes) {
  return `${Math.round(bytes / MIB)} MiB`;
}
