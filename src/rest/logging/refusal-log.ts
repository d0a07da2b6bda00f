/** Who is not let in is logged once for each source and second: a flood of bad signatures must not become a flood of lines. */
import type { Log } from '../../base/log.ts';

export interface RefusalLog {
  /** `details` are logged as they are: nothing secret belongs among them. */
  refused(remoteAddress: string | undefined, details: Readonly<Record<string, unknown>>): void;
}

const WINDOW_MILLISECONDS = 1_000;
/** Further ones share a line. */
const SOURCES_MAX = 1_000;
const OTHERS = 'others';

interface Source {
  /** When its last line was written. */
  since: number;
  /** Refused since then. */
  unlogged: number;
}

export function createRefusalLog(log: Log, now: () => number = () => performance.now()): RefusalLog {
  const sources = new Map<string, Source>();
  let sweptAt = -Infinity;

  /** Who has nothing left to say is forgotten. A source whose last number was not told yet stays until it comes again, or room is needed. */
  function sweep(time: number): void {
    if (time - sweptAt < WINDOW_MILLISECONDS) return;
    sweptAt = time;
    for (const [name, { since }] of sources) if (time - since >= WINDOW_MILLISECONDS) sources.delete(name);
  }

  function sourceKey(remoteAddress: string | undefined, time: number): string {
    const name = addressPrefix(remoteAddress);
    if (sources.has(name)) return name;
    if (sources.size >= SOURCES_MAX) sweep(time);
    return sources.size >= SOURCES_MAX ? OTHERS : name;
  }

  return {
    refused(remoteAddress, details) {
      const time = now();
      const name = sourceKey(remoteAddress, time);
      const source = sources.get(name);
      if (source && time - source.since < WINDOW_MILLISECONDS) {
        source.unlogged++;
        return;
      }
      const more = source?.unlogged ? { unlogged: source.unlogged } : undefined;
      sources.set(name, { since: time, unlogged: 0 });
      log.warn({ ...details, from: name, ...more }, 'refused');
    },
  };
}

/** An owner of IPv6 addresses has at least 2^64 of them. */
function addressPrefix(remoteAddress = 'unknown'): string {
  const address = remoteAddress.replace(/^::ffff:(?=\d+\.)/i, '');
  if (!address.includes(':')) return address;
  const [before = '', after] = address.split('%')[0]!.split('::');
  const first = before.split(':').filter((group) => group !== '');
  const rest = after === undefined ? [] : after.split(':').filter((group) => group !== '');
  const zeros = after === undefined ? [] : Array<string>(Math.max(0, 8 - first.length - rest.length)).fill('0');
  return `${[...first, ...zeros, ...rest].slice(0, 4).join(':')}::/64`;
}
