/** Rate-limited log of refused requests, one line per source and second: a flood of bad signatures must not become a flood of lines. */
import type { Log } from '../../base/log.ts';

interface RefusalLog {
  /** `details` are logged as they are: they must not contain secrets. */
  refused(remoteAddress: string | undefined, details: Readonly<Record<string, unknown>>): void;
}

const WINDOW_MILLISECONDS = 1_000;
/** Further sources share one line. */
const SOURCES_MAX = 1_000;
const OTHER_SOURCES = 'others';

interface Source {
  /** The time of its last line. */
  since: number;
  /** Requests refused since then. */
  unlogged: number;
}

export function createRefusalLog(log: Log, now: () => number = () => performance.now()): RefusalLog {
  const sources = new Map<string, Source>();
  let sweptAt = -Infinity;

  /** Forgets sources whose window has passed. Until space is needed, a source with unlogged requests stays, to be counted in its next line. */
  function sweep(time: number): void {
    if (time - sweptAt < WINDOW_MILLISECONDS) return;
    sweptAt = time;
    for (const [name, { since }] of sources) if (time - since >= WINDOW_MILLISECONDS) sources.delete(name);
  }

  function sourceKey(remoteAddress: string | undefined, time: number): string {
    const name = addressPrefix(remoteAddress);
    if (sources.has(name)) return name;
    if (sources.size >= SOURCES_MAX) sweep(time);
    return sources.size >= SOURCES_MAX ? OTHER_SOURCES : name;
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

/** IPv6 addresses by their /64 prefix: one client has at least 2^64 addresses. */
function addressPrefix(remoteAddress = 'unknown'): string {
  const address = remoteAddress.replace(/^::ffff:(?=\d+\.)/i, '');
  if (!address.includes(':')) return address;
  const [before = '', after] = address.split('%')[0]!.split('::');
  const first = before.split(':').filter((group) => group !== '');
  const rest = after === undefined ? [] : after.split(':').filter((group) => group !== '');
  const zeros = after === undefined ? [] : Array<string>(Math.max(0, 8 - first.length - rest.length)).fill('0');
  return `${[...first, ...zeros, ...rest].slice(0, 4).join(':')}::/64`;
}
