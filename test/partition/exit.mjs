/** Writes for some time, closes, and exits without waiting for the close. */
import { encodeKey } from '../../build/partition/keys.js';
import { openLmdb } from '../../build/partition/lmdb/engine.js';
import { openPartition } from '../../build/partition/transact.js';

const [location, writes, afterMilliseconds] = process.argv.slice(2);
const partition = openPartition(await openLmdb({ location, checkpointBytes: 2_000_000 }));
let next = 0;
await Promise.all(
  Array.from({ length: 8 }, async () => {
    while (next < Number(writes)) {
      const i = next++;
      const row = encodeKey(['row', i]);
      await partition.transact(row, async (tx) => {
        tx.put(row, Buffer.alloc(3_000, i));
        // Checkpoints with many rows are most of the time in the middle of a transaction.
        for (let small = 0; small < 100; small++) tx.put(encodeKey(['small', i, small]), Buffer.alloc(20));
      });
      process.send({ i });
    }
  }),
);
if (afterMilliseconds !== 'never') void partition.close();
setTimeout(() => process.exit(7), Number(afterMilliseconds) || 0);
