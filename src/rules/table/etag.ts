/** The ETag of an entity is its Timestamp. */
import { TICKS_PER_SECOND, ticksFromUnix, unixFromTicks } from '../../base/time.ts';

const ETAG = /^W\/"([^"]*)"$/;
const INSTANT = /^datetime'(\d{4}-\d\d-\d\dT\d\d)(?::|%3A)(\d\d)(?::|%3A)(\d\d)(?:\.(\d{1,7}))?Z'$/i;

let lastVersion = -1n;
let lastEtag = '';
let lastSecond = -1n;
let lastText = '';

/** W/"datetime'2017-11-10T02%3A47%3A54.9431592Z'", without trailing zeros of the fraction. Memoized: rows of a page often share a second, those of a batch an instant. */
export function formatTableEtag(version: bigint): string {
  if (version === lastVersion) return lastEtag;
  const second = version / TICKS_PER_SECOND;
  if (second !== lastSecond) {
    lastText = new Date(unixFromTicks(version)).toISOString().slice(0, 19).replaceAll(':', '%3A');
    lastSecond = second;
  }
  const fraction = Number(version - second * TICKS_PER_SECOND);
  const digits = fraction === 0 ? '' : `.${String(fraction).padStart(7, '0').replace(/0+$/, '')}`;
  lastEtag = `W/"datetime'${lastText}${digits}Z'"`;
  lastVersion = version;
  return lastEtag;
}

/** Which version of the entity meets If-Match; 'none': an ETag that no entity can have. */
export type EtagMatch = 'any' | 'none' | bigint;

/** Undefined: malformed, or more than one ETag. */
export function parseIfMatch(text: string): EtagMatch | undefined {
  if (text === '*') return 'any';
  const etag = ETAG.exec(text)?.[1];
  if (etag === undefined) return undefined;
  const [, hour, minute, second, fraction = ''] = INSTANT.exec(etag) ?? [];
  const milliseconds = Date.parse(`${hour}:${minute}:${second}Z`);
  if (Number.isNaN(milliseconds)) return 'none';
  return ticksFromUnix(milliseconds) + BigInt(fraction.padEnd(7, '0'));
}
