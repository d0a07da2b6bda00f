/** Commits numbered rows one after another, reports each outcome, and closes on request. */
import { encodeKey } from '../../build/partition/keys.js';
import { openLmdb } from '../../build/partition/lmdb/engine.js';
import { openPartition } from '../../build/partition/transact.js';

const [location, from, to, options = '{}'] = process.argv.slice(2);
const partition = openPartition(await openLmdb({ location, ...JSON.parse(options) }));
let isToldToClose = false;
process.on('message', () => {
  isToldToClose = true;
});

let failed = 0;
for (let i = Number(from); i < Number(to) && failed < 2 && !isToldToClose; i++) {
  const row = encodeKey(['row', i]);
  try {
    await partition.transact(row, async (tx) => tx.put(row, Buffer.alloc(3_000, i)));
    process.send({ i });
  } catch (error) {
    failed++;
    process.send({ i, error: error.name, isBroken: partition.isBroken() });
  }
}
process.send('over');
while (!isToldToClose) await new Promise((done) => setTimeout(done, 5));
await partition.close();
process.exit();
