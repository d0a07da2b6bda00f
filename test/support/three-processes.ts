/** Three servers, each a process of its own as users run it, on one PostgreSQL and one folder of bytes. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HoldfastServer, StartOptions } from 'holdfast';
import { inject } from 'vitest';
import { withAccounts } from '../../src/server/open-storage.ts';
import { restartableServer, startServers, stopServers } from './restartable-servers.ts';

/** Of all processes. */
export type Origins = Readonly<Record<'blob' | 'queue' | 'table' | 'file', readonly URL[]>>;

export interface ThreeProcesses {
  /** Moves the time of all, and ends all. Its address is that of the first. */
  readonly server: HoldfastServer;
  readonly origins: Origins;
  /** As `check` wants it. */
  readonly where: { readonly partition: string; readonly extents: string };
}

export async function startThree(options: StartOptions): Promise<ThreeProcesses> {
  const { blobKeepAliveSeconds: keepAlive = 600, rehydrationSeconds, copyFrom = [], seed } = options;
  const partition = await newDatabase();
  const extents = mkdtempSync(join(tmpdir(), 'holdfast-extents-'));
  const keepAlives = ['blob', 'queue', 'table', 'file'].flatMap((name) => [
    `--${name}KeepAliveTimeout`,
    String(keepAlive),
  ]);
  const rehydration = rehydrationSeconds === undefined ? [] : ['--rehydration', String(rehydrationSeconds)];
  const words = ['--partition', partition, '--extents', extents, '--test-clock', '--log-level', 'warn'];
  words.push(...keepAlives, ...rehydration, ...copyFrom.flatMap((origin) => ['--copy-from', origin]));
  if (typeof seed === 'string') words.push('--seed', seed);
  const servers = [restartableServer(words), restartableServer(words), restartableServer(words)];
  // A hook that fails keeps the others from running, also the one that would stop these; then the test process is ended so.
  function onTerminated(): void {
    for (const server of servers) void server.kill();
    process.kill(process.pid, 'SIGTERM');
  }
  process.once('SIGTERM', onTerminated);
  try {
    await startServers(servers);
  } catch (error) {
    await stopServers(servers);
    throw error;
  }
  const originsOf = (service: string) => servers.map((server) => new URL(server.originOf(service)!));
  const origins = {
    blob: originsOf('Blob'),
    queue: originsOf('Queue'),
    table: originsOf('Table'),
    file: originsOf('File'),
  };
  const first = origins.blob[0]!;

  async function stop(): Promise<void> {
    await stopServers(servers);
    process.off('SIGTERM', onTerminated);
    rmSync(extents, { recursive: true, force: true });
    const errors = servers.flatMap((server) => server.printed().match(/^\S+ (?:ERROR|FATAL) .*$/gm) ?? []);
    if (errors.length > 0) throw new Error(`The servers logged:\n${errors.join('\n')}`);
  }

  async function advance(seconds: number): Promise<void> {
    await post(first, `clock/advance?seconds=${seconds}`);
    // The others learn the time with their next read; requests that read nothing, as with an expired SAS, within a second.
    await Promise.all(origins.blob.slice(1).map((origin) => post(origin, 'clock/advance?seconds=0')));
  }

  return {
    server: {
      blobUrl: `${first.origin}/devstoreaccount1`,
      queueUrl: `${origins.queue[0]!.origin}/devstoreaccount1`,
      tableUrl: `${origins.table[0]!.origin}/devstoreaccount1`,
      fileUrl: `${origins.file[0]!.origin}/devstoreaccount1`,
      smbUrl: servers[0]!.smbUrl()!,
      connectionString: '',
      authority: undefined,
      stop,
      reset: () => post(first, 'reset'),
      setAccount: (name, settings) => withAccounts({ partition }, (accounts) => accounts.set(name, settings)),
      clock: { advance },
    },
    origins,
    where: { partition, extents },
  };
}

export async function newDatabase(): Promise<string> {
  const answer = await fetch(inject('postgresForAll'));
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return text;
}

async function post(origin: URL, path: string): Promise<void> {
  const answer = await fetch(new URL(`/_holdfast/${path}`, origin), { method: 'POST' });
  if (!answer.ok) throw new Error(await answer.text());
}
