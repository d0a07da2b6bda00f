/** Edm.DateTime: parsing and formatting. */
import { TICKS_PER_SECOND, ticksFromUnix, unixFromTicks } from '../../base/time.ts';

/** The epoch of Windows file times. */
export const YEAR_MIN = 1601;
const MINUTE_MILLISECONDS = 60_000;
const OFFSET_MINUTES_MAX = 14 * 60;
const DAYS_OF_MONTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
/** The Gregorian calendar repeats after a cycle. Dates are computed one cycle later, since Date.UTC adds 1900 to years below 100. */
const CYCLE_YEARS = 400;
const CYCLE_MILLISECONDS = 146_097 * 24 * 60 * MINUTE_MILLISECONDS;

/**
 * 2017-11-10T02:47:54.9431592Z; the time, the seconds, their fraction and the zone may be missing, and the zone may be +01:00.
 * Without a zone it is UTC. Undefined: no such instant. No regular expression, which would take several times as long.
 */
export function parseDateTime(text: string): bigint | undefined {
  const year = digitsAt(text, 0, 4);
  const month = digitsAfter(text, 4, '-');
  const day = digitsAfter(text, 7, '-');
  let hour = 0;
  let minute = 0;
  let second = 0;
  let fraction = '';
  let offset = 0;
  let at = 10;
  if (text[at] === 'T') {
    hour = digitsAt(text, 11, 2);
    minute = digitsAfter(text, 13, ':');
    at = 16;
    if (text[at] === ':') {
      second = digitsAt(text, 17, 2);
      at = 19;
      if (text[at] === '.') {
        const from = ++at;
        while (isDigit(text.charCodeAt(at))) at++;
        if (at === from) return undefined;
        fraction = text.slice(from, at);
      }
    }
  }
  if (text[at] === 'Z') at++;
  else if (text[at] === '+' || text[at] === '-') {
    const minutes = digitsAfter(text, at + 3, ':');
    offset = (digitsAt(text, at + 1, 2) * 60 + minutes) * (text[at] === '-' ? -1 : 1);
    if (!(minutes <= 59 && Math.abs(offset) <= OFFSET_MINUTES_MAX)) return undefined;
    at += 6;
  }
  if (at !== text.length || !(hour <= 23 && minute <= 59 && second <= 59)) return undefined;
  if (!isDay(year, month, day)) return undefined;
  const time = Date.UTC(year + CYCLE_YEARS, month - 1, day, hour, minute - offset, second) - CYCLE_MILLISECONDS;
  return ticksFromUnix(time) + fractionTicks(fraction);
}

const CANONICAL =
  /^(?!1600)(?:1[6-9]|[2-9]\d)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{0,6}[1-9])?Z$/;

/** Whether it is an instant within the range of the service, written as `formatDateTime` writes it. */
export function isCanonicalDateTime(text: string): boolean {
  if (!CANONICAL.test(text)) return false;
  const day = digitsAt(text, 8, 2);
  return day <= 28 || isDay(digitsAt(text, 0, 4), digitsAt(text, 5, 2), day);
}

function isDay(year: number, month: number, day: number): boolean {
  if (!(year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= DAYS_OF_MONTHS[month - 1]!)) return false;
  return day !== 29 || month !== 2 || isLeap(year);
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}

/** NaN: not all of them are digits. */
function digitsAt(text: string, from: number, count: number): number {
  let number = 0;
  for (let at = from; at < from + count; at++) {
    const unit = text.charCodeAt(at);
    if (!isDigit(unit)) return Number.NaN;
    number = number * 10 + unit - 0x30;
  }
  return number;
}

/** Two digits after this mark. */
function digitsAfter(text: string, at: number, mark: string): number {
  return text[at] === mark ? digitsAt(text, at + 1, 2) : Number.NaN;
}

/** Rounded by the eighth digit. */
function fractionTicks(fraction: string): bigint {
  if (fraction === '') return 0n;
  return BigInt(fraction.slice(0, 7).padEnd(7, '0')) + (fraction.charCodeAt(7) >= 0x35 ? 1n : 0n);
}

let lastSecond = -1n;
let lastText = '';

/** Without trailing zeros of the fraction. Memoizes the last second: instants of one page often share it. */
export function formatDateTime(ticks: bigint): string {
  const second = ticks / TICKS_PER_SECOND;
  if (second !== lastSecond) {
    lastText = new Date(unixFromTicks(second * TICKS_PER_SECOND)).toISOString().slice(0, 19);
    lastSecond = second;
  }
  let fraction = Number(ticks - second * TICKS_PER_SECOND);
  if (fraction === 0) return `${lastText}Z`;
  let digits = 7;
  for (; fraction % 10 === 0; digits--) fraction /= 10;
  return `${lastText}.${String(fraction).padStart(digits, '0')}Z`;
}
