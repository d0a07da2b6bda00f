/** A MiB of a page blob in 2,048 writes, with snapshots between which half of them change: what its merges, and the snapshots' deletions, look at. */
import { setTimeout as pause } from 'node:timers/promises';
import { connect, encodeRequest, maker } from './http-client.mjs';
import { createPageBlob } from './in-place-loops.mjs';

const SNAPSHOTS = 30;
const BLOB_BYTES = 2 ** 20;
const PAGE_BYTES = 512;
const PATH = '/cut-up/page';
/** Until the sweeper has done its work. */
const SWEPT_MILLISECONDS = 3_000;

/** @returns two pieces of work that others can be measured beside */
export async function cutUpPage(port) {
  const connection = await connect(port);
  const must = async (request, status) => {
    const answer = await connection.send(request, true);
    if (answer.status !== status) throw new Error(`${answer.status} instead of ${status}\n${answer.body}`);
  };
  await must(maker('PUT', { query: { restype: 'container' } })('/cut-up'), 201);
  const { method, path, ...create } = createPageBlob(PATH, BLOB_BYTES);
  await must(maker(method, create)(path), 201);
  const writes = Array.from({ length: BLOB_BYTES / PAGE_BYTES }, (_, page) => {
    const range = `bytes=${page * PAGE_BYTES}-${(page + 1) * PAGE_BYTES - 1}`;
    const headers = { 'x-ms-page-write': 'update', 'x-ms-range': range };
    return encodeRequest(
      maker('PUT', { query: { comp: 'page' }, headers, bytes: Buffer.alloc(PAGE_BYTES, 'x') })(PATH),
    );
  });
  return {
    async write() {
      for (let snapshot = 0; snapshot < SNAPSHOTS; snapshot++) {
        for (let page = snapshot % 2; page < writes.length; page += 2) await must(writes[page], 201);
        await must(maker('PUT', { query: { comp: 'snapshot' } })(PATH), 201);
      }
    },
    async deleteSnapshots() {
      await must(maker('DELETE', { headers: { 'x-ms-delete-snapshots': 'only' } })(PATH), 202);
      connection.close();
      await pause(SWEPT_MILLISECONDS);
    },
  };
}
