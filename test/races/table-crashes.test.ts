/** Processes that are killed in the middle of transactions: each is applied as a whole or not at all, and acknowledged ones are applied. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { check, type Where } from 'holdfast';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { newTableWriter } from '../crash/table-writer.mjs';
import { missing } from '../support/postgres-cluster.ts';
import { randomOf } from '../support/random.mjs';
import { restartableServer, type Server, startServers, stopServers } from '../support/restartable-servers.ts';
import { connectToTables } from '../support/signed-client.mjs';

const WRITERS = 6;
const KILLS = 4;

describe('Transactions of a process that is killed', { timeout: 240_000 }, () => {
  it('are done as a whole or not at all, on LMDB', async () => {
    const location = mkdtempSync(join(tmpdir(), 'holdfast-tables-'));
    onTestFinished(() => rmSync(location, { recursive: true, force: true }));
    await expectWhole([restartableServer(['--location', location, '--log-level', 'warn'])], location);
  });

  const isWanted = process.env.HOLDFAST_TEST_ON_POSTGRES !== 'nothing';
  it.skipIf(missing || !isWanted)('are done as a whole or not at all, for one of three on PostgreSQL', async () => {
    const partition = await (await fetch(inject('postgresForAll'))).text();
    const extents = mkdtempSync(join(tmpdir(), 'holdfast-extents-'));
    onTestFinished(() => rmSync(extents, { recursive: true, force: true }));
    const flags = ['--partition', partition, '--extents', extents, '--log-level', 'warn'];
    await expectWhole([restartableServer(flags), restartableServer(flags), restartableServer(flags)], {
      partition,
      extents,
    });
  });
});

/** Each writer has a process of its own, of which one is killed; those of the others go on. */
async function expectWhole(servers: readonly Server[], where: Where): Promise<void> {
  const seed = Date.now() % 2 ** 31;
  const random = randomOf(seed);
  const writers = Array.from({ length: WRITERS }, (_, number) => newTableWriter(number));
  onTestFinished(() => Promise.all(servers.map((server) => server.kill())).then(() => {}));
  await startServers(servers);
  const clientOf = (at: number) => connectToTables(servers[at % servers.length]!.originOf('Table')!);
  for (let kill = 0; kill < KILLS; kill++) {
    let isOver = false;
    const clients = writers.map((_, at) => clientOf(at + kill));
    const writing = Promise.all(
      writers.map((writer, at) => writer.write(clients[at]!, randomOf(random.below(2 ** 31)), () => isOver)),
    );
    await Promise.race([writing, atWork(writers)]);
    await pause(random.below(30));
    const killed = servers[kill % servers.length]!;
    await killed.kill();
    await killed.start();
    isOver = true;
    await writing;
    for (const client of clients) client.close();
    for (const [at, writer] of writers.entries()) {
      const client = clientOf(at + kill + 1);
      expect(await writer.verify(client), `seed ${seed}, kill ${kill}`).toEqual([]);
      client.close();
    }
  }
  await stopServers(servers);
  expect(servers.flatMap((server) => server.printed().match(/^\S+ (?:ERROR|FATAL) .*$/gm) ?? [])).toEqual([]);
  expect((await check(where)).findings).toEqual([]);
}

async function atWork(writers: Parameters<typeof acknowledged>[0]): Promise<void> {
  const enough = acknowledged(writers) + 20;
  while (acknowledged(writers) < enough) await pause(1);
}

function acknowledged(writers: readonly ReturnType<typeof newTableWriter>[]): number {
  return writers.reduce((sum, writer) => sum + writer.acknowledged(), 0);
}
