/** A PostgreSQL server of our own, in a temporary folder, for as long as a test file runs. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface ClusterOptions {
  /** Off where the test does not crash the machine. */
  fsync?: boolean;
  /** A user that needs this password; the others need none. */
  password?: { readonly user: string; readonly password: string };
  settings?: Readonly<Record<string, string>>;
}

export interface Cluster {
  readonly url: string;
  /** Of a database, user or password that need not exist. */
  urlOf(changes: { user?: string; password?: string; database?: string }): string;
  /** As a standby it only reads, and waits for a primary that never comes. */
  start(options?: { standby?: boolean }): Promise<void>;
  /** 'fast' ends all connections, 'immediate' is as a crash. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>;
  drop(): Promise<void>;
}

const FOLDERS = '/usr/lib/postgresql';
const VERSION_MIN = 15;

/** Why there can be no server here. */
export const missing: string | undefined = whyNot();

export function binaries(): string | undefined {
  if (!existsSync(FOLDERS)) return undefined;
  const newest = readdirSync(FOLDERS)
    .map(Number)
    .filter(Number.isInteger)
    .sort((a, b) => b - a)[0];
  return newest !== undefined && newest >= VERSION_MIN ? join(FOLDERS, String(newest), 'bin') : undefined;
}

function whyNot(): string | undefined {
  if (!binaries()) return `PostgreSQL >= ${VERSION_MIN} is not installed in ${FOLDERS}`;
  return owner() === undefined ? 'there is no user but root to run PostgreSQL' : undefined;
}

/** PostgreSQL refuses to run as root. */
export function owner(): { uid?: number; gid?: number } | undefined {
  if (process.getuid?.() !== 0) return {};
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const found = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody');
  return found && { uid: Number(found[2]), gid: Number(found[3]) };
}

export async function startCluster({ fsync = false, password, settings = {} }: ClusterOptions = {}): Promise<Cluster> {
  const bin = binaries()!;
  const user = owner()!;
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-postgres-'));
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid!);
  const data = join(folder, 'data');
  const made = spawnSync(join(bin, 'initdb'), ['-k', '-N', '-D', data, '-U', 'holdfast', '-A', 'trust', '-E', 'UTF8'], {
    ...user,
    cwd: folder,
    encoding: 'utf8',
  });
  if (made.status !== 0) throw new Error(`initdb: ${made.stderr}`);
  const port = await freePort();
  const all = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: folder,
    port: String(port),
    max_connections: '200',
    fsync: fsync ? 'on' : 'off',
    ...(fsync ? {} : { full_page_writes: 'off', shared_buffers: '64MB' }),
    ...settings,
  };
  let server: ChildProcess | undefined;

  const urlOf: Cluster['urlOf'] = ({ user: name = 'holdfast', password, database = 'postgres' }) =>
    `postgres://${name}${password === undefined ? '' : `:${password}`}@127.0.0.1:${port}/${database}`;

  async function start({ standby = false }: { standby?: boolean } = {}): Promise<void> {
    const signal = join(data, 'standby.signal');
    if (standby) writeFileSync(signal, '');
    else rmSync(signal, { force: true });
    server = await runPostgres(data, all);
  }

  async function stop(mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
    const running = server;
    server = undefined;
    if (!running || running.exitCode !== null || running.signalCode !== null) return;
    const gone = once(running, 'exit');
    running.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
    await gone;
  }

  if (password) {
    const rules = join(data, 'pg_hba.conf');
    writeFileSync(rules, `host all ${password.user} 127.0.0.1/32 scram-sha-256\n${readFileSync(rules, 'utf8')}`);
  }
  await start();
  if (password) {
    const role = `create role ${password.user} login password '${password.password}'`;
    const made = spawnSync(join(bin, 'psql'), ['-q', '-d', urlOf({}), '-c', role], { encoding: 'utf8' });
    if (made.status !== 0) throw new Error(`psql: ${made.stderr}`);
  }
  return {
    url: urlOf({}),
    urlOf,
    start,
    stop,
    async drop() {
      await stop('immediate');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The server on a folder that initdb or a backup has made, once it takes connections. */
export async function runPostgres(data: string, settings: Readonly<Record<string, string>>): Promise<ChildProcess> {
  const bin = binaries()!;
  const words = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = spawn(join(bin, 'postgres'), ['-D', data, ...words], {
    ...owner(),
    cwd: dirname(data),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  server.stderr!.on('data', (text) => {
    log = (log + text).slice(-4_000);
  });
  const isReady = (): boolean =>
    spawnSync(join(bin, 'pg_isready'), ['-q', '-h', '127.0.0.1', '-p', settings.port!]).status === 0;
  for (let tries = 0; !isReady(); tries++) {
    if (server.exitCode !== null || tries > 300) {
      server.kill('SIGQUIT');
      throw new Error(`PostgreSQL did not start: ${log}`);
    }
    await sleep(100);
  }
  return server;
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  return port;
}
