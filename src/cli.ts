#!/usr/bin/env node
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { StartError, type StartOptions } from './config.ts';
import { helpText, readCommand } from './flags.ts';
import { progressBar } from './progress.ts';

const underNpm = process.env.npm_lifecycle_event !== undefined;

/** Ctrl-C under npm arrives twice, from the terminal and from npm, which passes it on: that is one wish. */
const ECHO_MS = underNpm ? 500 : 0;

try {
  await run();
} catch (error) {
  const line = lineOf(error);
  if (line === undefined) throw error;
  console.error(`holdfast: ${line}`);
  process.exitCode = 1;
}

async function run(): Promise<void> {
  const command = readCommand(process.argv.slice(2), process.env);
  if (command.command === 'help') console.log(helpText());
  else if (command.command === 'version') console.log(`holdfast ${version()}`);
  else if (command.command === 'check') await checkFolder(resolve(command.location));
  else await serve(command.options, command.silent);
}

async function serve(options: StartOptions, silent: boolean): Promise<void> {
  const { start } = await import('./main.ts');
  const starting = start(options);
  onSignals(async () => (await starting).stop());
  const server = await starting;
  if (silent) return;
  // Tools that start the emulator wait for the last of these lines, in these words.
  console.log(`Holdfast ${version()}
  blob service       ${server.blobUrl}
  data               ${options.inMemory ? 'in memory, gone at the end' : resolve(options.location ?? 'holdfast-data')}
  connection string  ${server.connectionString}
Azurite Blob service is successfully listening at ${new URL(server.blobUrl).origin}`);
}

/** The first signal stops the server, which finishes the requests that run; the second ends at once. */
function onSignals(stop: () => Promise<void>): void {
  let firstAt: number | undefined;
  const onSignal = (): void => {
    if (firstAt === undefined) {
      firstAt = performance.now();
      stop().then(
        () => process.exit(0),
        (error) => {
          console.error('holdfast: the server did not stop cleanly:', error);
          process.exit(1);
        },
      );
    } else if (performance.now() - firstAt >= ECHO_MS) {
      process.exit(130);
    }
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  if (underNpm) onOrphaned(onSignal);
}

/** npm passes SIGTERM to the shell between itself and us, and some shells die of it without telling us. */
function onOrphaned(act: () => void): void {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    act();
  }, 200).unref();
}

async function checkFolder(location: string): Promise<void> {
  if (!existsSync(location)) throw new StartError(`There is no folder ${location}: name the data by --location.`);
  const { check } = await import('./main.ts');
  const bar = progressBar(process.stderr);
  const { notes, findings } = await check(location, bar.show).finally(bar.clear);
  for (const line of [...notes, ...findings]) console.log(line);
  console.log(findings.length === 0 ? 'Everything is in order.' : `${findings.length} findings.`);
  process.exitCode = findings.length === 0 ? 0 : 1;
}

function version(): string {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version;
}

/** What the user can put right, in one line; undefined: a bug, whose stack is wanted. */
function lineOf(error: unknown): string | undefined {
  if (error instanceof StartError) return error.message;
  if (!(error instanceof Error)) return undefined;
  const { code, port, address, path, syscall } = error as NodeJS.ErrnoException & { port?: number; address?: string };
  if (code === 'EADDRINUSE') return `Port ${port} is in use: choose another by --blobPort, or 0 for any free one.`;
  if (syscall === 'listen') return `Cannot listen on ${address}:${port} (${code}): choose --blobHost and --blobPort.`;
  if (code === 'ENOTFOUND') return `The host is not known (${error.message}): choose another by --blobHost.`;
  if (path !== undefined && ['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST', 'ENOSPC'].includes(code ?? '')) {
    return `Cannot write ${path} (${code}): choose another folder by --location.`;
  }
  return undefined;
}
