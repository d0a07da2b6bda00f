/** Instants are bigint, 100-ns ticks since 0001-01-01. Conversions from and to JavaScript's and HTTP's dates. */
export const TICKS_PER_SECOND = 10_000_000n;
const UNIX_EPOCH = 621355968000000000n;

export function ticksFromUnix(unixMilliseconds: number): bigint {
  const whole = Math.floor(unixMilliseconds);
  return UNIX_EPOCH + BigInt(whole) * 10_000n + BigInt(Math.round((unixMilliseconds - whole) * 10_000));
}

export function unixFromTicks(ticks: bigint): number {
  return Number((ticks - UNIX_EPOCH) / 10_000n);
}

/** Windows counts from 1601 on. */
const FILETIME_EPOCH = 504911232000000000n;

/** A FILETIME: 100-ns ticks since 1601; what is earlier is 1601. */
export function filetimeFromTicks(ticks: bigint): bigint {
  return ticks < FILETIME_EPOCH ? 0n : ticks - FILETIME_EPOCH;
}

export function ticksFromFiletime(filetime: bigint): bigint {
  return filetime + FILETIME_EPOCH;
}

const dates = new Map<bigint, string>();
const isoDates = new Map<bigint, string>();
const DATES_CACHED_MAX = 1_000;

/** HTTP's dates have whole seconds, so fractions are cut off. Many rows share a second, so dates are cached. */
export function formatRfc1123(ticks: bigint): string {
  return cachedBySecond(dates, ticks, (unix) => new Date(unix).toUTCString());
}

function cachedBySecond(
  cache: Map<bigint, string>,
  ticks: bigint,
  format: (unixMilliseconds: number) => string,
): string {
  const second = ticks / TICKS_PER_SECOND;
  let text = cache.get(second);
  if (text === undefined) {
    text = format(unixFromTicks(truncateToSecond(ticks)));
    if (cache.size >= DATES_CACHED_MAX) cache.clear();
    cache.set(second, text);
  }
  return text;
}

export function truncateToSecond(ticks: bigint): bigint {
  return ticks - (ticks % TICKS_PER_SECOND);
}

/** 2019-05-01T10:20:30.1234567Z */
export function formatIso7(ticks: bigint): string {
  const fraction = (ticks % TICKS_PER_SECOND).toString().padStart(7, '0');
  return `${cachedBySecond(isoDates, ticks, (unix) => new Date(unix).toISOString().slice(0, 19))}.${fraction}Z`;
}

const ISO_7 = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,7}))?Z$/;

/** The text of `formatIso7`, the fraction shorter or absent. Undefined: it names no moment. */
export function parseIso7(text: string): bigint | undefined {
  const [, seconds, fraction = ''] = ISO_7.exec(text) ?? [];
  if (seconds === undefined) return undefined;
  const milliseconds = Date.parse(`${seconds}Z`);
  // Date.parse takes the 30th of February for the 2nd of March.
  if (Number.isNaN(milliseconds) || new Date(milliseconds).toISOString().slice(0, 19) !== seconds) return undefined;
  const ticks = ticksFromUnix(milliseconds) + BigInt(fraction.padEnd(7, '0'));
  return ticks < 0n ? undefined : ticks;
}

const HTTP_DATE = /^(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?, /i;

let parsedText = '';
let parsed: number | undefined;

/** RFC 1123 and RFC 850 dates; undefined for anything else. The last one is cached: requests of one second have the same date. */
export function parseHttpDateUnix(text: string): number | undefined {
  if (text === parsedText) return parsed;
  const milliseconds = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  parsedText = text;
  parsed = Number.isNaN(milliseconds) ? undefined : milliseconds;
  return parsed;
}

export function parseHttpDate(text: string): bigint | undefined {
  const milliseconds = parseHttpDateUnix(text);
  return milliseconds === undefined ? undefined : ticksFromUnix(milliseconds);
}
