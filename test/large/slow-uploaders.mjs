/** Clients that declare a body and send it so slowly that it never ends; half of them put blobs, half blocks. */
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from '../support/signed-client.mjs';

const DECLARED_BYTES = 1 << 20;
const BYTES = Buffer.alloc(300, 'slow ');
/** Milliseconds of a tick: in each a part of the clients sends, so that together they send all the time. */
const TURNS = 10;

/** @param {string} origin @param {string} container @param {number} count */
export async function startSlowUploaders(origin, container, count) {
  const client = connect(origin);
  /** @type {import('node:http').ClientRequest[]} */
  const requests = [];
  /** @type {string[]} */
  const faults = [];
  let vanished = false;

  for (let at = 0; at < count; at++) {
    const [target, type] =
      at % 2 === 0
        ? [`/${container}/blob-${at}`, { 'x-ms-blob-type': 'BlockBlob' }]
        : [`/${container}/blocks-${at}?comp=block&blockid=AAAA`, {}];
    const headers = { 'content-length': String(DECLARED_BYTES), ...type };
    const onRequest = (/** @type {import('node:http').ClientRequest} */ outgoing) => {
      requests.push(outgoing);
      outgoing.write(BYTES);
    };
    client.send('PUT', target, { headers, onRequest }).then(
      ({ status, code }) => faults.push(`slow uploader ${at} was answered ${status} ${code}`),
      (error) => vanished || faults.push(`slow uploader ${at} lost its connection: ${error.message}`),
    );
    if (at % 50 === 49) await pause(20);
  }

  let turn = 0;
  const timer = setInterval(() => {
    turn = (turn + 1) % TURNS;
    for (let at = turn; at < count; at += TURNS) requests[at]?.write(BYTES);
  }, 1_000 / TURNS);

  return {
    /** Not all of them: if one is, many are. */
    faults: () => faults.slice(0, 3),
    vanish() {
      vanished = true;
      clearInterval(timer);
      for (const request of requests) request.destroy();
      client.close();
    },
  };
}
