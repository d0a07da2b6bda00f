/** A server in the foreground: from the command line until a signal, or a message of the parent, ends it. */
import { configOf, dataOf, type StartOptions } from './config.ts';
import type { Listening, Surface } from './emulator.ts';

export interface Serving {
  readonly options: StartOptions;
  readonly silent: boolean;
  readonly version: string;
}

export async function serve(surface: Surface, { options, silent, version }: Serving): Promise<void> {
  const say = (lines: readonly string[]) => {
    if (!silent || !surface.silenced) for (const line of lines) console.log(line);
  };
  // Who waited for its lines may close the pipe then. That ends no server.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  const config = configOf(options);
  const { blobHost: host, blobPort, https } = config;
  const at = (port: number): Listening => ({ scheme: https ? 'https' : 'http', host, port });
  say(surface.starting(at(blobPort)));
  const starting = import('./main.ts').then(({ start }) => start(options));
  // From the first moment: a start can take long, and must be as easy to end.
  stopOnSignals(surface.name, async () => {
    say(surface.closing);
    await (await starting).stop();
    say(surface.closed);
  });
  const server = await starting;
  if (!silent) {
    console.log(`Holdfast ${version}
  blob service       ${server.blobUrl}
  data               ${dataOf(config)}
  connection string  ${server.connectionString || 'none: holdfast account add <name> makes an account'}`);
    if (server.authority) {
      const { waysToTrust } = await import('./own-certificate.ts');
      console.log(waysToTrust(server.authority, new URL(server.blobUrl).origin));
    }
  }
  say(surface.listening(at(portOf(new URL(server.blobUrl)))));
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
  const onSignal = (): void => {
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
      process.exit(130);
    }
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  // Windows has no signals that could be caught: there a parent that forked the emulator sends this.
  process.on('message', (message) => message === 'shutdown' && onSignal());
  process.channel?.unref();
  if (underNpm) onOrphaned(onSignal);
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
