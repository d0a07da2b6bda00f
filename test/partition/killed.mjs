/** Commits pairs of rows concurrently and reports acknowledged ones, until it is killed. */
import { encodeKey } from '../../build/partition/keys.js';
import { openLmdb } from '../../build/partition/lmdb/engine.js';
import { openPartition } from '../../build/partition/transact.js';

const [location, wall, options = '{}'] = process.argv.slice(2);
const partition = openPartition(
  await openLmdb({ location, ...(wall && { wall: () => BigInt(wall) }), ...JSON.parse(options) }),
);

async function write(client) {
  for (let i = 0; ; i++) {
    const { timestamp } = await partition.transact(encodeKey(['client', client]), async (tx) => {
      for (const side of ['left', 'right']) tx.put(encodeKey([side, client, i]), Buffer.alloc(3000, i));
      tx.put(encodeKey(['latest', client]), Buffer.from(String(i)));
      tx.add(encodeKey(['commits']), 1n);
    });
    process.send({ client, i, timestamp: String(timestamp), now: String(partition.clock.now()) });
  }
}
for (let client = 0; client < 8; client++) write(client);
