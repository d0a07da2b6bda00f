/** Load generator: a process of its own, which runs one order of the bench at a time and answers with its measurements. */
import { randomUUID } from 'node:crypto';
import { loops as blobLoops } from './blob-loops.mjs';
import { fileLoops } from './file-loops.mjs';
import { connect, maker } from './http-client.mjs';
import { inPlaceLoops } from './in-place-loops.mjs';
import { queueLoops } from './queue-loops.mjs';
import { tableLoops } from './table-loops.mjs';

const loops = { ...blobLoops, ...inPlaceLoops, ...tableLoops, ...queueLoops, ...fileLoops };

process.on('message', (spec) =>
  runOrder(spec).then(
    (result) => process.send({ result }),
    (error) => process.send({ error: error.stack }),
  ),
);
process.on('disconnect', () => process.exit());

async function runOrder(spec) {
  return spec.loop ? measure(spec) : await request(spec);
}

/** One request, timed. */
async function request({ ports, method, path, ...more }) {
  const connection = await connect(ports[0]);
  const text = maker(method, more)(path);
  const started = performance.now();
  const { status, head, body: answer } = await connection.send(text, true);
  connection.close();
  return { status, head, milliseconds: performance.now() - started, body: answer.toString('latin1', 0, 2_000) };
}

async function measure(spec) {
  const { ports, clients, milliseconds, stepsMin = 1 } = spec;
  if (spec.blobs) {
    const connection = await connect(ports[0]);
    spec.leases = await prepareBlobs(connection, spec);
    connection.close();
  }
  for (const request of spec.prepare ?? []) await prepare(ports[0], request);
  // Preparing requests may take longer than a server keeps an idle connection.
  const client = loops[spec.loop](spec);
  const connections = await Promise.all(
    Array.from({ length: clients }, (_, number) => connect(ports[number % ports.length])),
  );
  const latencies = [];
  const notes = {};
  const note = (name, count) => {
    notes[name] = (notes[name] ?? 0) + count;
  };
  const started = performance.now();
  const until = started + milliseconds;
  await Promise.all(
    connections.map(async (connection, number) => {
      const step = client(number);
      const send = async (text, expected, keep) => {
        const answer = await connection.send(text, keep);
        if (answer.status !== expected && !(Array.isArray(expected) && expected.includes(answer.status))) {
          throw new Error(`${spec.loop}: ${answer.status} instead of ${expected}\n${answer.head}\n${answer.body}`);
        }
        return answer;
      };
      const record = (taken) => latencies.push(taken);
      const timed = async (text, expected, keep) => {
        const sent = performance.now();
        const answer = await send(text, expected, keep);
        record(performance.now() - sent);
        return answer;
      };
      for (let steps = 0; steps < stepsMin || performance.now() < until; steps++) await step(timed, note, record, send);
    }),
  );
  const elapsed = performance.now() - started;
  if (notes.increments !== undefined) await checkCounters(connections[0], spec, notes.increments);
  for (const connection of connections) connection.close();
  return { operations: latencies.length, elapsed, ...notes, ...percentiles(latencies) };
}

/** A request that the loop needs, before the clock runs. */
async function prepare(port, { method, path, ...more }) {
  const connection = await connect(port);
  await expect(connection, maker(method, more)(path), 201);
  connection.close();
}

/** Each begins at 0; those of `underLease` have a lease that never ends. */
async function prepareBlobs(connection, { loop, container, run, blobs }) {
  const leases = [];
  for (let number = 0; number < blobs; number++) {
    const path = `/${container}/${run}-${number}`;
    const put = maker('PUT', { headers: { 'x-ms-blob-type': 'BlockBlob' }, body: '0'.padEnd(1_024) });
    await expect(connection, put(path), 201);
    if (loop !== 'underLease') continue;
    const id = randomUUID();
    const headers = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': '-1', 'x-ms-proposed-lease-id': id };
    await expect(connection, maker('PUT', { query: { comp: 'lease' }, headers })(path), 201);
    leases.push(id);
  }
  return leases;
}

/** A lost update would make every number here worthless. */
async function checkCounters(connection, { container, run, blobs }, increments) {
  let sum = 0;
  for (let number = 0; number < blobs; number++) {
    const { body } = await expect(connection, maker('GET')(`/${container}/${run}-${number}`), 200);
    sum += Number(body.latin1Slice(0, 16));
  }
  if (sum !== increments) throw new Error(`${increments} increments were acknowledged, the counters say ${sum}`);
}

async function expect(connection, text, status) {
  const answer = await connection.send(text, true);
  if (answer.status !== status) throw new Error(`${answer.status} instead of ${status}\n${answer.body}`);
  return answer;
}

function percentiles(latencies) {
  const sorted = Float64Array.from(latencies).sort();
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: sorted.at(-1) };
}
