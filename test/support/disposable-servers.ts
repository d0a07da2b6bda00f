/** For tests of anomalies: servers in child processes, and folders and disks that are removed with the test. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { launch, startServer } from './server-process.mjs';
import { connect } from './signed-client.mjs';

export type Client = ReturnType<typeof connect>;
export type Server = Awaited<ReturnType<typeof startServer>> & { readonly client: Client };

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-anomaly-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** Starts a server on the folder, with a client to it; it is killed when the test is over. */
export async function serve(location: string, options?: Parameters<typeof startServer>[1]): Promise<Server> {
  const server = await startServer(location, options);
  const client = connect(server.origin);
  onTestFinished(async () => {
    client.close();
    await server.kill('SIGKILL');
  });
  return { ...server, client };
}

/** The one line of a start that fails. */
export async function refusal(location: string, options?: Parameters<typeof launch>[1]): Promise<string> {
  const program = launch(location, options);
  expect(await program.ended).toEqual({ code: 1, signal: null });
  const lines = program.stderr().trimEnd().split('\n');
  expect(lines).toHaveLength(1);
  return lines[0] ?? '';
}

export const noStrace = hasCommand('strace') ? undefined : 'strace is not installed, or this is not Linux';
export const noMount = mountFault();

/** A folder on a disk of its own. */
export function newDisk(megabytes: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-disk-'));
  mount(folder, megabytes);
  onTestFinished(() => {
    unmount(folder);
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

function mountFault(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'a small disk can be mounted only by root on Linux';
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-disk-'));
  const { status } = mount(folder, 1);
  if (status === 0) unmount(folder);
  rmSync(folder, { recursive: true, force: true });
  return status === 0 ? undefined : 'this machine refuses to mount a tmpfs';
}

function mount(folder: string, megabytes: number) {
  mkdirSync(folder, { recursive: true });
  return spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder]);
}

function unmount(folder: string): void {
  spawnSync('umount', ['--lazy', folder]);
}

function hasCommand(name: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, name)));
}
