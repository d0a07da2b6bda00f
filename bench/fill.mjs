/**
 * node fill.mjs <folder> <container> <blobs>: puts blobs of 1 KiB into a data folder that no server uses, far faster than
 * requests could, through the project's own row functions.
 * node fill.mjs <folder> --trash: prints how many blobs of deleted containers the sweeper has still to give back.
 */
import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { crc64Base64 } from '../dist/base/hashes.js';
import { decodeTrash, trashIn } from '../dist/content/rows.js';
import { rowsIn } from '../dist/data-folder.js';
import { past } from '../dist/partition/keys.js';
import { openLmdb } from '../dist/partition/lmdb.js';
import { readLmdb } from '../dist/partition/lmdb-reads.js';
import { openPartition } from '../dist/partition/transact.js';
import { encodeBytes } from '../dist/partition/values.js';
import { openAccounts } from '../dist/services/accounts.js';
import { createContainer } from '../dist/services/blob/containers.js';
import { encodeHead } from '../dist/services/blob/heads.js';
import { containerIdAt, headKey, headsIn, inlineKey } from '../dist/services/blob/rows.js';
import { account, accountKey } from './http.mjs';
import { nameOf } from './loops.mjs';

const BLOBS_A_COMMIT = 500;
const COMMITS_AT_ONCE = 4;

const [folder, container, blobs] = process.argv.slice(2);
if (container === '--trash') console.log(await blobsInTrash());
else await fill(Number(blobs));

async function fill(count) {
  mkdirSync(rowsIn(folder), { recursive: true });
  const partition = openPartition(await openLmdb({ location: rowsIn(folder) }));
  const { id } = (await openAccounts(partition, { developmentKeys: [accountKey] })).find(account);
  const storage = { partition, account: id, sweeper: { wake() {} } };
  await createContainer(storage, { container, metadata: [] });
  const containerId = await partition.read((at) => containerIdAt(at, storage, container));
  const bytes = Buffer.alloc(1_024, 'x');
  const contentMd5 = createHash('md5').update(bytes).digest('base64');
  const head = { length: bytes.length, crc64: crc64Base64(bytes), content: { contentMd5 }, metadata: {} };
  const inline = encodeBytes(bytes);
  let next = 0;
  await Promise.all(
    Array.from({ length: COMMITS_AT_ONCE }, async () => {
      while (next < count) {
        const from = next;
        next = Math.min(count, from + BLOBS_A_COMMIT);
        const to = next;
        await partition.transact(headKey(id, containerId, nameOf(from)), async (tx) => {
          const value = encodeHead({ ...head, created: tx.stamp });
          for (let number = from; number < to; number++) {
            tx.put(headKey(id, containerId, nameOf(number)), value);
            tx.put(inlineKey(id, containerId, nameOf(number)), inline);
          }
        });
      }
    }),
  );
  await partition.close();
}

async function blobsInTrash() {
  const partition = openPartition(readLmdb(rowsIn(folder)));
  const { id } = (await openAccounts(partition)).find(account);
  let count = 0;
  await partition.read(async (at) => {
    for (const row of await at.scan(trashIn(id), { limit: 1_000 })) {
      const trash = decodeTrash(row);
      if (trash.kind !== 'container') continue;
      const heads = headsIn(id, BigInt(trash.container), '');
      count += (await at.scan({ from: heads, to: past(heads) }, { limit: 10_000_000 })).length;
    }
  });
  await partition.close();
  return count;
}
