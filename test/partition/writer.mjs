/** The other writer of the conformance suite: a thread or a process that opens the store and commits on request. */
import { parentPort, workerData } from 'node:worker_threads';
import { openPostgres } from '../../build/partition/postgres/engine.js';
import { openPartition } from '../../build/partition/transact.js';

const { postgres } = workerData ?? JSON.parse(process.argv[2]);
const port = parentPort ?? process;
const tell = (message) => (parentPort ? parentPort.postMessage(message) : process.send(message));

const partition = openPartition(await openPostgres(postgres));
port.on('message', async ({ key, value, n, end }) => {
  if (end) {
    await partition.close();
    process.exit();
  }
  await partition.transact(key, async (tx) => {
    if (n === undefined) tx.put(key, Buffer.from(String(value)));
    else tx.add(key, BigInt(n));
  });
  tell('done');
});
tell('ready');
