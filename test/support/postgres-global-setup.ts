/** One PostgreSQL for all test files of a run: started when the first of them asks for a database, dropped after the last. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestProject } from 'vitest/node';
import { databaseIn } from '../histories/faults.ts';
import { type Cluster, startCluster } from './postgres-cluster.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the test files, which run in processes of their own, ask. */
    postgresForAll: string;
  }
}

export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  let cluster: Promise<Cluster> | undefined;
  const asked = createServer(async (_, answer) => {
    try {
      cluster ??= startCluster({ settings: { max_connections: '400' } });
      answer.end(await databaseIn(await cluster));
    } catch (error) {
      answer.writeHead(500).end(String(error));
    }
  });
  asked.listen(0, '127.0.0.1').unref();
  await once(asked, 'listening');
  provide('postgresForAll', `http://127.0.0.1:${(asked.address() as AddressInfo).port}/`);
  return async () => {
    asked.close();
    await (await cluster)?.drop();
  };
}
