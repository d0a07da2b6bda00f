/**
 * node bench/volatile.mjs [postgres://... | milliseconds] (build first): opens and closes of 64 clients as commits of volatile rows, in turn
 * with the same commits as logged rows; and the private memory of 100,000 opens. With a number, each sync of the log takes so much longer,
 * as on a slower disk.
 */
import fs, { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeKey, volatileKey } from '../build/partition/keys.js';
import { openLmdb } from '../build/partition/lmdb/engine.js';
import { openPostgres } from '../build/partition/postgres/engine.js';
import { openPartition } from '../build/partition/transact.js';

const PAIRS = 9;
const ROUND_MILLISECONDS = 700;
const CLIENTS = 64;
const OPENS = 100_000;

const location = await mkdtemp(join(tmpdir(), 'holdfast-bench-volatile-'));
const [argument = '0'] = process.argv.slice(2);
const url = argument.startsWith('postgres') ? argument : undefined;
const syncMilliseconds = url ? 0 : Number(argument);
if (syncMilliseconds > 0) {
  const { fdatasync } = fs;
  fs.fdatasync = (file, done) => setTimeout(fdatasync, syncMilliseconds, file, done);
  syncBuiltinESMExports();
}
const engine = url ? await openPostgres({ url, schema: `bench ${process.pid}` }) : await openLmdb({ location });
const partition = openPartition(engine);

const summary = Buffer.from(JSON.stringify({ opens: 1, access: [1, 0, 0], share: [1, 1, 1], deletePending: false }));
const open = Buffer.from(
  JSON.stringify({
    access: 'read write',
    share: 'read',
    epoch: '638000000000000000',
    client: '192.168.178.24:51234',
    path: 'folder/subfolder/document.docx',
    since: '638000000000000000',
  }),
);

/** One row for the file and one for the open, as handles have. */
async function openAndClose(makeKey, file, id) {
  const [fileKey, openKey] = [makeKey([1n, 'O', 7n, file]), makeKey([1n, 'o', 7n, file, id])];
  await partition.transact(fileKey, async (tx) => {
    await tx.get(fileKey);
    tx.put(fileKey, summary);
    tx.put(openKey, open);
  });
  await partition.transact(fileKey, async (tx) => {
    await tx.getMany([fileKey, openKey]);
    tx.remove(fileKey);
    tx.remove(openKey);
  });
}

async function round(makeKey) {
  const end = performance.now() + ROUND_MILLISECONDS;
  const [started, cpu] = [performance.now(), process.cpuUsage()];
  let commits = 0;
  await Promise.all(
    Array.from({ length: CLIENTS }, async (_, client) => {
      for (let id = 0n; performance.now() < end; id++, commits += 2) await openAndClose(makeKey, client, id);
    }),
  );
  const { user, system } = process.cpuUsage(cpu);
  return { rate: (commits * 1_000) / (performance.now() - started), micros: (user + system) / commits };
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const privateBytes = () =>
  Number(/Private_Dirty:\s+(\d+)/.exec(readFileSync('/proc/self/smaps_rollup', 'utf8'))[1]) / 1_024;

for (const makeKey of [encodeKey, volatileKey]) await round(makeKey);
const pairs = [];
for (let i = 0; i < PAIRS; i++) pairs.push([await round(encodeKey), await round(volatileKey)]);
const column = (index, field) => median(pairs.map((pair) => pair[index][field]));
console.log(`logged:   ${Math.round(column(0, 'rate'))} commits/s, ${column(0, 'micros').toFixed(1)} us of CPU each`);
console.log(`volatile: ${Math.round(column(1, 'rate'))} commits/s, ${column(1, 'micros').toFixed(1)} us of CPU each`);
const ratios = pairs.map(([logged, volatile]) => volatile.rate / logged.rate);
console.log(
  `ratio of the rates: ${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`,
);
const cpuRatios = pairs.map(([logged, volatile]) => logged.micros / volatile.micros);
console.log(`ratio by CPU: ${median(cpuRatios).toFixed(2)}`);

if (!url) {
  const before = privateBytes();
  for (let from = 0; from < OPENS; from += CLIENTS)
    await Promise.all(
      Array.from({ length: CLIENTS }, (_, i) => {
        const [fileKey, openKey] = [volatileKey([1n, 'O', 8n, from + i]), volatileKey([1n, 'o', 8n, from + i, 1n])];
        return partition.transact(fileKey, async (tx) => {
          await tx.get(fileKey);
          tx.put(fileKey, Buffer.from(summary));
          tx.put(openKey, Buffer.from(open));
        });
      }),
    );
  console.log(
    `private memory: ${before.toFixed(0)} MB before, ${privateBytes().toFixed(0)} MB with ${OPENS} opens (heap ${(process.memoryUsage().heapUsed / 2 ** 20).toFixed(0)} MB used)`,
  );
}
await partition.close();
await rm(location, { recursive: true, force: true });
