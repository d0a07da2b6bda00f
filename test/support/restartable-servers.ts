/** Servers as users run them, each a process that can be killed, stopped for a while, and started again. */
import { fileURLToPath } from 'node:url';
import { run } from './server-process.mjs';

export interface Server {
  /** Of its blobs. None while it does not run. */
  origin(): string | undefined;
  /** Of another service: Queue, Table or File. */
  originOf(service: string): string | undefined;
  smbUrl(): string | undefined;
  start(): Promise<void>;
  /** With -9, by default. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  pause(): void;
  resume(): void;
  /** Its output, over all restarts. */
  printed(): string;
}

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** @param folder a repository, or a copy that has `dist` and `node_modules` */
export function restartableServer(flags: readonly string[], folder = root): Server {
  let program: ReturnType<typeof run> | undefined;
  let origin: string | undefined;
  let former = '';
  const own = () => (program ? program.stdout() + program.stderr() : '');
  return {
    origin: () => origin,
    originOf: (service) => (origin === undefined ? undefined : program?.origins()[service]),
    smbUrl: () => (origin === undefined ? undefined : /^ +SMB +(smb:\S+)$/m.exec(program?.stdout() ?? '')?.[1]),
    async start() {
      const words = [`${folder}/dist/bin/holdfast.js`, 'start', '--blobPort', '0', ...flags];
      program = run([process.execPath, ...words]);
      const ready = await program.ready;
      if (!ready) throw new Error(`The server did not start: ${own()}`);
      origin = ready;
    },
    async kill(signal = 'SIGKILL') {
      origin = undefined;
      // A stopped process takes no other signal.
      if (signal !== 'SIGKILL') program?.signal('SIGCONT');
      await program?.kill(signal);
      former += own();
      program = undefined;
    },
    pause: () => program?.signal('SIGSTOP'),
    resume: () => program?.signal('SIGCONT'),
    printed: () => former + own(),
  };
}

export async function startServers(servers: readonly Server[]): Promise<void> {
  await Promise.all(servers.map((server) => server.start()));
}

export async function stopServers(servers: readonly Server[]): Promise<void> {
  await Promise.all(servers.map((server) => server.kill('SIGTERM')));
}
