/**
 * A steady small load in a thread of its own: blobs of a few KiB are put, read and compared. A request that has to begin late
 * is counted from when it should have begun, so that a stalled server cannot hide by requests that were never sent.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { bytesOf } from '../support/seeded-bytes.mjs';
import { connect } from '../support/signed-client.mjs';

const LANES = 4;
const EVERY_MILLISECONDS = 25;

/**
 * @typedef {{ count: number, p50: number, p99: number, slowest: number, faults: string[] }} Figures in milliseconds
 */

/** @param {string} origin @param {string} container */
export function startSteadyLoad(origin, container) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { origin, container } });
  /** @type {Promise<never>} */
  const failed = new Promise((_, reject) => worker.once('error', reject));
  failed.catch(() => {});
  return {
    /** Of the requests since the last call. @returns {Promise<Figures>} */
    figures() {
      /** @type {Promise<Figures>} */
      const told = new Promise((resolve) => worker.once('message', resolve));
      worker.postMessage('tell');
      return Promise.race([told, failed]);
    },
    stop: () => worker.terminate(),
  };
}

if (!isMainThread && workerData?.container) run(workerData);

/** @param {{ origin: string, container: string }} options */
function run({ origin, container }) {
  const client = connect(origin);
  /** @type {number[]} */
  let times = [];
  /** @type {string[]} */
  let faults = [];

  /** @param {number} lane */
  async function work(lane) {
    let due = performance.now() + (lane * EVERY_MILLISECONDS) / LANES;
    for (let number = 0; ; number++) {
      await pause(Math.max(due - performance.now(), 0));
      try {
        await request(lane, number);
      } catch (error) {
        faults.push(`a small request failed: ${error}`);
      }
      times.push(performance.now() - due);
      due = Math.max(due + EVERY_MILLISECONDS, performance.now());
    }
  }

  /** Every second one reads what the one before has put. @param {number} lane @param {number} number */
  async function request(lane, number) {
    const put = number - (number % 2);
    const path = `${container}/${lane}-${put % 64}`;
    const body = bytesOf(`${lane}-${put}`, 512 + (put % 7) * 1024);
    if (number === put) {
      const { status } = await client.putBlob(path, body);
      if (status !== 201) faults.push(`a small Put Blob was answered ${status}`);
      return;
    }
    const found = await client.getBlob(path);
    if (found.status !== 200 || !found.body.equals(body)) faults.push(`a small Get Blob was answered ${found.status}`);
  }

  parentPort?.on('message', () => {
    const sorted = times.sort((one, other) => one - other);
    const at = (/** @type {number} */ share) => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
    parentPort?.postMessage({ count: sorted.length, p50: at(0.5), p99: at(0.99), slowest: at(1), faults });
    times = [];
    faults = [];
  });
  for (let lane = 0; lane < LANES; lane++) void work(lane);
}
