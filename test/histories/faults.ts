/** Faults that are injected into processes on PostgreSQL. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Cluster } from '../support/postgres-cluster.ts';
import type { Server } from '../support/restartable-servers.ts';

export async function killAndRestart(server: Server): Promise<void> {
  await server.kill();
  await server.start();
}

export async function standStill(server: Server, seconds: number): Promise<void> {
  server.pause();
  await sleep(seconds * 1000);
  server.resume();
}

/** Ends about a third of the connections, whatever they are doing. */
export function terminateBackends(url: string): Promise<void> {
  return query(
    url,
    `select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = 'holdfast' and datname = current_database() and random() < 0.3`,
  );
}

let databases = 0;

/** A new one, by its URL. */
export async function databaseIn(cluster: Cluster): Promise<string> {
  const database = `histories_${++databases}`;
  await query(cluster.url, `create database ${database}`);
  return cluster.urlOf({ database });
}

async function query(url: string, text: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}

/** Outcomes of commits whose connection was lost, from the logs of the servers. */
export function resolvedOutcomes(servers: readonly Server[]): Record<string, number> {
  const outcomes: Record<string, number> = {};
  for (const server of servers) {
    for (const [, outcome = ''] of server.printed().matchAll(/lost in a commit.*outcome=(\w+)/g)) {
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    }
  }
  return outcomes;
}
