/** Entry point of the programs in bin/: parses the command line and runs the command. */
import { readFileSync } from 'node:fs';
import { CannotListen, StartError } from '../server/config.ts';
import type { CliFlavour } from './azurite-compat.ts';
import { serve } from './serve.ts';
import { helpText, parseCommand } from './start-flags.ts';

/** @param program the URL of a file in bin/, from which package.json has the same relative path in dist and in build */
export async function main(flavour: CliFlavour, program: string): Promise<void> {
  try {
    await run(flavour, () => readVersion(program));
  } catch (error) {
    const line = userMessage(error);
    if (line === undefined) throw error;
    console.error(`${flavour.name}: ${line}`);
    process.exitCode = 1;
  }
}

async function run(flavour: CliFlavour, version: () => string): Promise<void> {
  const { words, warning } = flavour.filterArguments(process.argv.slice(2));
  const command = parseCommand(words, process.env);
  if (command.command === 'help') console.log(helpText(command.topic));
  else if (command.command === 'version') console.log(flavour.version(version()));
  else if (command.command === 'check') await (await import('./check.ts')).runCheck(command.where);
  else if (command.command === 'import') await (await import('./import.ts')).runImport(command.import);
  else if (command.command === 'account') console.log(await (await import('./account.ts')).runAccount(command.account));
  else if (command.command === 'sas') console.log(await (await import('./sas.ts')).runSas(command.sas));
  else if (command.command === 'clock') console.log(await (await import('./clock.ts')).runClock(command.clock));
  else if (command.command === 'handles') console.log(await (await import('./handles.ts')).runHandles(command.handles));
  else {
    if (warning) console.error(`${flavour.name}: ${warning}`);
    await serve(flavour, { ...command, version: version() });
  }
}

function readVersion(program: string): string {
  return JSON.parse(readFileSync(new URL('../../package.json', program), 'utf8')).version;
}

/** One line about an error that the user can correct; undefined: a bug, whose stack is wanted. */
function userMessage(error: unknown): string | undefined {
  if (error instanceof StartError) return error.message;
  if (!(error instanceof Error)) return undefined;
  const { code, path } = error as NodeJS.ErrnoException;
  if (error instanceof CannotListen) return describeCannotListen(error);
  if (path !== undefined && ['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST', 'ENOSPC'].includes(code ?? '')) {
    return `Cannot write ${path} (${code}): choose another folder by --location.`;
  }
  return undefined;
}

function describeCannotListen({ endpoint: { service, host, port }, code, message }: CannotListen): string {
  if (code === 'EADDRINUSE')
    return `Port ${port} is in use: choose another by --${service}Port, or 0 for any free one.`;
  if (code === 'ENOTFOUND') return `The host is not known (${message}): choose another by --${service}Host.`;
  return `Cannot listen on ${host}:${port} (${code ?? message}): choose --${service}Host and --${service}Port.`;
}
