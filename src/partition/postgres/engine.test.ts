import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import pg from 'pg';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { conversation } from '../../../test/partition/conversation.ts';
import { type Cluster, missing, startCluster } from '../../../test/support/postgres-cluster.ts';
import { partitionConformance, type Store } from '../conformance/suite.ts';
import type { Engine } from '../partition.ts';
import { openPostgres } from './engine.ts';

const helper = fileURLToPath(new URL('../../../test/partition/writer.mjs', import.meta.url));
const schemas = new WeakMap<Store, string>();
let cluster: Cluster;
let stores = 0;

if (missing) {
  describe('a partition on PostgreSQL', () => {
    it.skip(`is not tested: ${missing}`, () => {});
  });
} else {
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster.drop());
  conformance();
}

function conformance(): void {
  const where = (store: Store) => ({ url: cluster.url, schema: schemas.get(store) });
  partitionConformance('PostgreSQL', {
    durable: true,
    isShared: true,
    readBack: 1_000,
    async open() {
      const schema = `store ${++stores}`;
      let engines: Engine[] = [];
      const open = async () => {
        const engine = await openPostgres({ url: cluster.url, schema });
        engines.push(engine);
        return engine;
      };
      const close = async () => {
        await Promise.all(engines.map((engine) => engine.close()));
        engines = [];
      };
      const store: Store = {
        engine: await open(),
        beside: open,
        async reopen() {
          await close();
          return open();
        },
        async drop() {
          await close();
          await dropSchema(schema);
        },
      };
      schemas.set(store, schema);
      return store;
    },
    otherWriters: {
      'a second thread': async (store) => {
        const worker = new Worker(helper, { workerData: { postgres: where(store) } });
        return conversation(worker, (message) => worker.postMessage(message));
      },
      'a second process': async (store) => {
        const child = fork(helper, [JSON.stringify({ postgres: where(store) })], { execArgv: [] });
        return conversation(child, (message) => child.send(message));
      },
    },
  });
}

async function dropSchema(schema: string): Promise<void> {
  const client = new pg.Client(cluster.url);
  await client.connect();
  await client.query(`drop schema "${schema}" cascade`);
  await client.end();
}
