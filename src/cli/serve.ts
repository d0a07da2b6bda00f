/** Runs a server in the foreground until a signal, or a message of the parent process, ends it. */
import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { endProcess } from '../base/end-process.ts';
import { standardOutput } from '../base/log-output.ts';
import type { HoldfastServer } from '../index.ts';
import { describeDataLocation, resolveConfig, type StartOptions } from '../server/config.ts';
import type { ServiceName } from '../services/common/names.ts';
import type { CliFlavour, ListenAddress } from './azurite-compat.ts';

export interface ServeOptions {
  readonly options: StartOptions;
  readonly silent: boolean;
  readonly version: string;
}

export async function serve(flavour: CliFlavour, serveOptions: ServeOptions): Promise<void> {
  const { silent, version } = serveOptions;
  const { services } = flavour;
  tuneCollector();
  const options = { ...serveOptions.options, services };
  const printLines = (lines: readonly string[]) => {
    if (!silent || !flavour.honoursSilent) for (const line of lines) print(line);
  };
  // A tool that waited for the lines may close the pipes afterwards: the server goes on.
  process.stderr.on('error', () => undefined);
  const config = resolveConfig(options);
  const scheme = config.https ? 'https' : 'http';
  const listening = config.endpoints.map(({ service, host, port }): ListenAddress => ({ service, scheme, host, port }));
  for (const at of listening) printLines(flavour.startingLines(at));
  const starting = import('../index.ts').then(({ start }) => start(options));
  // Before the start has finished: it can take long, and a signal must end it, too.
  stopOnSignals(flavour.name, async () => {
    for (const service of services) printLines(flavour.closingLines(service));
    await (await starting).stop();
    for (const service of services) printLines(flavour.closedLines(service));
  });
  const server = await starting;
  if (!silent) {
    const served = services
      .filter((service) => serviceUrl(server, service) !== '')
      .map((service) => `  ${`${service} service`.padEnd(19)}${serviceUrl(server, service)}\n`);
    if (server.smbUrl) served.push(`  ${'SMB'.padEnd(19)}${server.smbUrl}\n`);
    print(`Holdfast ${version}
${served.join('')}  data               ${describeDataLocation(config)}
  connection string  ${server.connectionString || 'none: holdfast account add <name> makes an account'}`);
    if (server.authority) {
      const { trustInstructions } = await import('../server/tls/self-signed.ts');
      print(trustInstructions(server.authority, new URL(serviceUrl(server, services[0]!)).origin));
    }
  }
  for (const at of listening) {
    const url = serviceUrl(server, at.service);
    if (url !== '') printLines(flavour.listeningLines({ ...at, port: portFrom(new URL(url)) }));
  }
}

/**
 * A server that writes makes many objects that live for a second, until the next checkpoint: V8 would collect all objects several times a second. With
 * three times the size of what lives as a limit, writes of pages take a sixth less CPU time, and 100,000 blobs are written with as much memory.
 */
const HEAP_GROWING_PERCENT = 200;

function tuneCollector(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWING_PERCENT}`);
  // On few cores, the threads that help to collect young objects take a tenth of the CPU time, and hardly shorten a pause.
  if (availableParallelism() <= 2) setFlagsFromString('--no-parallel-scavenge');
}

/** In order with the lines of requests. */
function print(text: string): void {
  standardOutput.write(`${text}\n`);
}

function serviceUrl(server: HoldfastServer, service: ServiceName): string {
  return server[`${service}Url`];
}

/** A URL leaves out the default port of its scheme. */
function portFrom({ port, protocol }: URL): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80);
}

const underNpm = process.env.npm_lifecycle_event !== undefined;

/** Ctrl-C under npm arrives twice, from the terminal and forwarded by npm: the two count as one. */
const DUPLICATE_SIGNAL_MS = underNpm ? 500 : 0;

/** The first signal stops the server after its running requests; the second ends the process at once. */
function stopOnSignals(name: string, stop: () => Promise<void>): void {
  let firstAt: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (firstAt === undefined) {
      firstAt = performance.now();
      stop().then(
        () => exitSoon(0),
        (error) => {
          console.error(`${name}: the server did not stop cleanly:`, error);
          exitSoon(1);
        },
      );
    } else if (performance.now() - firstAt >= DUPLICATE_SIGNAL_MS) {
      endProcess(signal);
    }
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  // Windows has no signals that a process can catch: a parent that forked the emulator sends this message instead.
  process.on('message', (message) => message === 'shutdown' && onSignal('SIGTERM'));
  process.channel?.unref();
  if (underNpm) onOrphaned(() => onSignal('SIGTERM'));
}

/** Gives the last lines time to reach a pipe: on Windows writes to pipes are asynchronous. */
function exitSoon(code: number): void {
  process.exitCode = code;
  setTimeout(() => process.exit(), 100).unref();
}

/** npm sends SIGTERM to the shell that it started this process with, and some shells end without forwarding it. */
function onOrphaned(callback: () => void): void {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    callback();
  }, 200).unref();
}
