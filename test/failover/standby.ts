/** PostgreSQL with a standby, and the faults that hit them. */
import { type ChildProcess, spawnSync } from 'node:child_process';
import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { binaries, freePort, owner, runPostgres } from '../support/postgres-cluster.ts';

export interface Node {
  readonly url: string;
  readonly port: number;
  /** Of its first process. */
  readonly pid: number;
}

export interface Standby extends Node {
  /** From now on received WAL is stored but not replayed: queries do not see it. */
  pauseReplay(): Promise<void>;
  promote(): Promise<void>;
  drop(): void;
}

export async function nodeAt(url: string): Promise<Node> {
  const { folder } = await ask<{ folder: string }>(url, `select current_setting('data_directory') as folder`);
  const [pid] = readFileSync(join(folder, 'postmaster.pid'), 'utf8').split('\n');
  return { url, port: Number(new URL(url).port), pid: Number(pid) };
}

/** Copied from the primary, which from then on waits for it with every commit, if it is to be synchronous. */
export async function startStandby(primary: Node, { synchronous }: { synchronous: boolean }): Promise<Standby> {
  const user = owner()!;
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-standby-'));
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid!);
  const data = join(folder, 'data');
  const words = ['-D', data, '-d', primary.url, '-R', '-c', 'fast', '--no-sync'];
  const copied = spawnSync(join(binaries()!, 'pg_basebackup'), words, { ...user, cwd: folder, encoding: 'utf8' });
  if (copied.status !== 0) throw new Error(`pg_basebackup: ${copied.stderr}`);
  const port = await freePort();
  const server: ChildProcess = await runPostgres(data, {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: folder,
    port: String(port),
    max_connections: '200',
    shared_buffers: '64MB',
    fsync: 'off',
    full_page_writes: 'off',
  });
  const url = new URL(primary.url);
  url.port = String(port);
  if (synchronous) {
    await ask(primary.url, `alter system set synchronous_standby_names = '*'`);
    await ask(primary.url, 'select pg_reload_conf()');
  }
  const wanted = `select count(*)::int as count from pg_stat_replication where state = 'streaming'
    and sync_state ${synchronous ? '=' : '<>'} 'sync' and current_setting('synchronous_standby_names') = '${synchronous ? '*' : ''}'`;
  while ((await ask<{ count: number }>(primary.url, wanted)).count === 0) await sleep(20);
  return {
    url: url.href,
    port,
    pid: server.pid!,
    async pauseReplay() {
      await ask(url.href, 'select pg_wal_replay_pause()');
    },
    async promote() {
      // It does not wait for the end: replay may have to wait for the snapshot of this very query.
      await ask(url.href, 'select pg_promote(false)');
      const still = 'select pg_is_in_recovery() as standby';
      while ((await ask<{ standby: boolean }>(url.href, still)).standby) await sleep(20);
    },
    drop() {
      if (server.exitCode === null && server.signalCode === null) killNode({ pid: server.pid! });
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** As when a machine loses power: none of its processes does anything any more. */
export function killNode({ pid }: Pick<Node, 'pid'>): void {
  process.kill(pid, 'SIGSTOP');
  for (const child of childrenOf(pid)) signal(child.pid, 'SIGKILL');
  process.kill(pid, 'SIGKILL');
}

/** Stops the process of this name: the WAL sender or receiver. */
export function halt(node: Node, name: 'walsender' | 'walreceiver'): { goOn(): void } {
  const halted = childrenOf(node.pid).filter(({ title }) => title.includes(name));
  if (halted.length === 0) throw new Error(`PostgreSQL has no ${name}.`);
  for (const { pid } of halted) signal(pid, 'SIGSTOP');
  return {
    goOn() {
      for (const { pid } of halted) signal(pid, 'SIGCONT');
    },
  };
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended by itself.
  }
}

function childrenOf(parent: number): { pid: number; title: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const afterName = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ').at(-1)!;
        if (Number(afterName.split(' ')[1]) !== parent) return [];
        return [{ pid: Number(name), title: readFileSync(`/proc/${name}/cmdline`, 'utf8') }];
      } catch {
        return [];
      }
    });
}

async function ask<Row>(url: string, text: string): Promise<Row> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows[0] as Row;
  } finally {
    await client.end();
  }
}
