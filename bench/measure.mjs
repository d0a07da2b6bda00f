/** Rounds and their numbers. */

/** An order for the load, at the ports of the service that it is for. */
export function order(load, server, spec) {
  return load.run({ ...spec, ports: server.ports[spec.service ?? 'blob'] });
}

/** One side in one round: the measurements of the load, and the resources that the server's process used. */
export async function measure(load, server, spec) {
  const before = await server.sample();
  const result = await order(load, server, spec);
  const { cpuMilliseconds, loopP99, loopMax } = await server.sample();
  return {
    ...result,
    opsPerSecond: (result.operations / result.elapsed) * 1_000,
    cpuMillisecondsPerOperation: (cpuMilliseconds - before.cpuMilliseconds) / result.operations,
    loopP99,
    loopMax,
  };
}

/** With fewer requests than these clients send in a round, V8 is still compiling. */
const WARM_CLIENTS = 64;

const WARM_LOOPS = ['put', 'get', 'insert', 'snapshot', 'append', 'putPage'];

function warmUpOf(spec) {
  return spec.clients === 1 && WARM_LOOPS.includes(spec.loop) ? { ...spec, clients: WARM_CLIENTS } : undefined;
}

/**
 * A B A B ..., so that a disturbance of the machine hits both. First rounds warm both up and are not counted.
 * `warmUp`: with what, before them.
 */
export async function interleave({ load, rounds, milliseconds }, sides, specOf, warmUp = warmUpOf) {
  const names = Object.keys(sides);
  for (const name of names) {
    const warm = warmUp(specOf(name), name);
    if (warm) await measure(load, sides[name], { ...warm, milliseconds: 2 * milliseconds });
  }
  for (const name of names) await measure(load, sides[name], { ...specOf(name), milliseconds });
  const taken = [];
  for (let round = 0; round < rounds; round++) {
    const sample = {};
    for (const name of names) sample[name] = await measure(load, sides[name], { ...specOf(name), milliseconds });
    taken.push(sample);
  }
  return taken;
}

export function spread(values) {
  const sorted = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  if (sorted.length === 0) return undefined;
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return { median, min: sorted[0], max: sorted.at(-1) };
}

export function summary(rounds, side) {
  const of = (field) => spread(rounds.map((round) => round[side][field]));
  return {
    opsPerSecond: of('opsPerSecond'),
    p50: of('p50').median,
    p99: of('p99').median,
    cpuMillisecondsPerOperation: of('cpuMillisecondsPerOperation').median,
    loopP99: of('loopP99').median,
    ...(rounds[0][side].increments === undefined ? {} : { increments: incrementsPerSecond(rounds, side) }),
  };
}

function incrementsPerSecond(rounds, side) {
  return spread(rounds.map((round) => (round[side].increments / round[side].elapsed) * 1_000)).median;
}

/** The ratio of the two sides, round by round. */
export function ratioOf(rounds, one, other, field = 'opsPerSecond') {
  return spread(rounds.map((round) => round[one][field] / round[other][field]));
}
