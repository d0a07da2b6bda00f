/**
 * npm run test:clients [-- --only python,go]: the newest clients of others, fetched into a folder of their own, against a server on
 * this disk. A client that cannot be installed here is skipped, with the reason.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { start } from 'holdfast';
import { clients } from './newest.mjs';
import { Unavailable } from './steps.mjs';

const { values } = parseArgs({ options: { only: { type: 'string', default: Object.keys(clients).join(',') } } });
const wanted = values.only.split(',');
const unknown = wanted.filter((name) => !Object.hasOwn(clients, name));
if (unknown.length > 0) {
  console.error(`There is no client ${unknown.join(', ')}; there are ${Object.keys(clients).join(', ')}.`);
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), 'holdfast-clients-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));
const location = join(folder, 'data');
const server = await start({ location, blobPort: 0, log: { level: 'error' } });

const count = { passed: 0, failed: 0, skipped: 0 };
for (const name of wanted) {
  console.log(`\n${name}`);
  try {
    const checks = await clients[name]({ folder: join(folder, name), location, server, print: console.log });
    for (const { title, fault } of checks) {
      // An operation of docs/operations.md that is not built yet is no news.
      const missing = /[\w ]+ is not implemented by this server yet/.exec(fault ?? '')?.[0];
      if (fault === undefined) console.log(`  ok      ${title}`);
      else console.log(missing ? `  skipped ${title}: ${missing}` : `  failed  ${title}: ${fault}`);
      count[fault === undefined ? 'passed' : missing ? 'skipped' : 'failed']++;
    }
    if (checks.length === 0) throw new Error('It checked nothing.');
  } catch (error) {
    const skipped = error instanceof Unavailable;
    console.log(skipped ? `  skipped ${error.message}` : `  failed  ${error.message}`);
    count[skipped ? 'skipped' : 'failed']++;
  }
}
await server.stop();
console.log(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
process.exit(count.failed === 0 ? 0 : 1);
