/**
 * npm run test:clients [-- --only python,go] [--verbose]: the newest clients of others against Holdfast and against Azurite, one after the
 * other. A client that cannot be installed here is skipped, with the reason. --verbose prints the failures with Azurite too.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { clients } from './clients.mjs';
import { checkToolchains } from './install.mjs';
import { formatFailures, formatTable, unknownFailures } from './report.mjs';
import { endServers, fetchAzurite, servers, startTarget } from './servers.mjs';
import { Unavailable } from './steps.mjs';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: Object.keys(clients).join(',') },
    verbose: { type: 'boolean', default: false },
  },
});
const wanted = values.only.split(',');
const unknown = wanted.filter((name) => !Object.hasOwn(clients, name));
if (unknown.length > 0) {
  console.error(`There is no client ${unknown.join(', ')}; there are ${Object.keys(clients).join(', ')}.`);
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), 'holdfast-clients-'));
process.on('exit', () => {
  endServers();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

let present = servers;
try {
  console.log(`Azurite ${fetchAzurite()}`);
} catch (error) {
  if (!(error instanceof Unavailable)) throw error;
  console.log(`skipped ${error.message}`);
  present = servers.filter(({ kind }) => kind !== 'azurite');
}

const results = [];
for (const name of wanted) {
  const result = await test(name);
  results.push(result);
  for (const { kind, title } of present) {
    const lines = formatFailures(result, kind);
    if (lines.length > 0 && (kind === 'holdfast' || values.verbose)) console.log([`  ${title}:`, ...lines].join('\n'));
  }
}
const failures = results.flatMap((result) => unknownFailures(result).map(({ title }) => `${result.name}: ${title}`));
console.log(`\n${formatTable(results, present)}\n`);
console.log(
  failures.length === 0 ? 'No unknown failure.' : `${failures.length} unknown failures:\n${failures.join('\n')}`,
);
process.exit(failures.length === 0 ? 0 : 1);

/** @param {string} name @returns {Promise<import('./report.mjs').Result>} */
async function test(name) {
  const { needs, install, run, ofShares } = clients[name];
  let tool;
  try {
    await checkToolchains(needs);
    tool = await install();
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error);
    if (!(error instanceof Unavailable)) return { name, checks: { holdfast: [{ title: 'can be built', fault }] } };
    console.log(`\n${name}\n  skipped ${fault}`);
    return { name, unavailable: fault, checks: {} };
  }
  console.log(`\n${name} ${tool.version}`);
  /** @type {import('./report.mjs').Result['checks']} */
  const checks = {};
  for (const { kind } of present.filter((server) => !ofShares || server.kind === 'holdfast')) {
    const own = join(folder, `${name}-${kind}`);
    mkdirSync(join(own, 'files'), { recursive: true });
    const target = await startTarget(kind, join(own, 'data'));
    const found = await run(tool, { target, folder: join(own, 'files') }).catch((error) => [
      { title: 'runs to its end', fault: String(error) },
    ]);
    await target.stop();
    checks[kind] = found.length > 0 ? found : [{ title: 'runs to its end', fault: 'It checked nothing.' }];
    rmSync(own, { recursive: true, force: true, maxRetries: 5 });
  }
  return { name, version: tool.version, checks };
}
