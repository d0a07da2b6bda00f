/** Rows that both servers run, interleaved: the part that all services share. */
import { interleave, ratioOf, summary } from './measure.mjs';
import { startServer } from './servers.mjs';

export const count = (number) => number.toLocaleString('en');
export const clientsOf = (clients) => (clients === 1 ? '1 client' : `${clients} clients`);

export async function withPair(bench, fn, folders = { holdfast: bench.newFolder(), azurite: bench.newFolder() }) {
  const pair = {};
  try {
    for (const kind of Object.keys(folders)) pair[kind] = await startServer(kind, folders[kind]);
    await fn(pair);
  } finally {
    for (const server of Object.values(pair)) await server.stop();
    for (const folder of Object.values(folders)) bench.removeFolder(folder);
  }
}

/** @param field the measurement that is compared, if not the rate: a time */
export async function pairRow(bench, pair, { title, meaning, spec, field, warmUp }) {
  if (!bench.wanted(title)) return;
  bench.say(title);
  const samples = await interleave(bench, pair, spec, warmUp);
  const row = {
    title,
    meaning,
    unit: 'x',
    value: field ? ratioOf(samples, 'azurite', 'holdfast', field) : ratioOf(samples, 'holdfast', 'azurite'),
    cpuRatio: ratioOf(samples, 'azurite', 'holdfast', 'cpuMillisecondsPerOperation'),
    sides: { holdfast: summary(samples, 'holdfast'), azurite: summary(samples, 'azurite') },
    samples,
  };
  row.loopP99 = row.sides.holdfast.loopP99;
  bench.add(row);
}

/** 64 clients on one resource, and 64 on as many: the share of the rate that contention leaves. */
export async function crowdRow(bench, pair, { title, meaning, thing, spec }) {
  if (!bench.wanted(title)) return;
  bench.say(title);
  const [one, many] = [`one ${thing}`, `64 ${thing}s`];
  const sides = {};
  for (const [kind, server] of Object.entries(pair)) {
    sides[`${kind}, ${one}`] = server;
    sides[`${kind}, ${many}`] = server;
  }
  const samples = await interleave(bench, sides, (side) => ({ ...spec(side.endsWith(one) ? 1 : 64), clients: 64 }));
  const [ours, theirs] = ['holdfast', 'azurite'].map((kind) => ({
    ratio: ratioOf(samples, `${kind}, ${one}`, `${kind}, ${many}`),
    one: summary(samples, `${kind}, ${one}`),
    many: summary(samples, `${kind}, ${many}`),
  }));
  bench.add({
    title,
    meaning,
    unit: 'x',
    value: ours.ratio,
    azurite: theirs.ratio,
    loopP99: Math.max(ours.one.loopP99, ours.many.loopP99),
    details: `${details(one, ours.one)}; ${details(many, ours.many)}; Azurite: ${details(one, theirs.one)}; ${details(many, theirs.many)}`,
    samples,
  });
}

function details(name, { opsPerSecond, p50, p99, increments }) {
  const counted = increments === undefined ? '' : `, ${Math.round(increments)} increments/s`;
  return `${name} ${Math.round(opsPerSecond.median)}/s (${p50.toFixed(1)}/${p99.toFixed(1)} ms)${counted}`;
}
