/** A server in the foreground: from the command line until a signal, or a message of the parent, ends it. */
import { endProcess } from '../base/end-process.ts';
import type { HoldfastServer } from '../index.ts';
import { configOf, dataOf, type StartOptions } from '../server/config.ts';
import type { ServiceName } from '../services/common/names.ts';
import type { Listening, Surface } from './azurite-compat.ts';

export interface Serving {
  readonly options: StartOptions;
  readonly silent: boolean;
  readonly version: string;
}

export async function serve(surface: Surface, serving: Serving): Promise<void> {
  const { silent, version } = serving;
  const { services } = surface;
  const options = { ...serving.options, services };
  const say = (lines: readonly string[]) => {
    if (!silent || !surface.silenced) for (const line of lines) console.log(line);
  };
  // Who waited for its lines may close the pipe then. That ends no server.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  const config = configOf(options);
  const scheme = config.https ? 'https' : 'http';
  const listening = config.endpoints.map(({ service, host, port }): Listening => ({ service, scheme, host, port }));
  for (const at of listening) say(surface.starting(at));
  const starting = import('../index.ts').then(({ start }) => start(options));
  // From the first moment: a start can take long, and must be as easy to end.
  stopOnSignals(surface.name, async () => {
    for (const service of services) say(surface.closing(service));
    await (await starting).stop();
    for (const service of services) say(surface.closed(service));
  });
  const server = await starting;
  if (!silent) {
    const served = services.map((service) => `  ${`${service} service`.padEnd(19)}${urlOf(server, service)}\n`);
    console.log(`Holdfast ${version}
${served.join('')}  data               ${dataOf(config)}
  connection string  ${server.connectionString || 'none: holdfast account add <name> makes an account'}`);
    if (server.authority) {
      const { waysToTrust } = await import('../server/tls/self-signed.ts');
      console.log(waysToTrust(server.authority, new URL(urlOf(server, services[0]!)).origin));
    }
  }
  for (const at of listening) say(surface.listening({ ...at, port: portOf(new URL(urlOf(server, at.service))) }));
}

function urlOf(server: HoldfastServer, service: ServiceName): string {
  return server[`${service}Url`];
}

/** A URL leaves out the port that its scheme has anyway. */
function portOf({ port, protocol }: URL): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80);
}

const underNpm = process.env.npm_lifecycle_event !== undefined;

/** Ctrl-C under npm arrives twice, from the terminal and from npm, which passes it on: that is one wish. */
const ECHO_MS = underNpm ? 500 : 0;

/** The first signal stops the server, which finishes the requests that run; the second ends at once. */
function stopOnSignals(name: string, stop: () => Promise<void>): void {
  let firstAt: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (firstAt === undefined) {
      firstAt = performance.now();
      stop().then(
        () => end(0),
        (error) => {
          console.error(`${name}: the server did not stop cleanly:`, error);
          end(1);
        },
      );
    } else if (performance.now() - firstAt >= ECHO_MS) {
      endProcess(signal);
    }
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  // Windows has no signals that could be caught: there a parent that forked the emulator sends this.
  process.on('message', (message) => message === 'shutdown' && onSignal('SIGTERM'));
  process.channel?.unref();
  if (underNpm) onOrphaned(() => onSignal('SIGTERM'));
}

/** Leaves a moment in which the last lines reach a pipe: on Windows they do not at once. */
function end(code: number): void {
  process.exitCode = code;
  setTimeout(() => process.exit(), 100).unref();
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
