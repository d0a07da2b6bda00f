/** Time-to-live and visibility of messages. */
import { TICKS_PER_SECOND } from '../../base/time.ts';

type Instant = bigint;

const WEEK_SECONDS = 604_800;
export const VISIBILITY_SECONDS_MAX = WEEK_SECONDS;
export const TTL_SECONDS_DEFAULT = WEEK_SECONDS;
/** The time-to-live of a message that does not expire. */
const TTL_NEVER = -1;
const TTL_SECONDS_MAX = 2 ** 31 - 1;
/** The last instant of the year 9999. */
export const NEVER: Instant = 3_155_378_975_999_999_999n;

/** A parameter that is out of its bounds, or wrong for another reason. */
export type TimingFault =
  | { readonly parameter: string; readonly value: number; readonly min: number; readonly max: number }
  | { readonly parameter: string; readonly value: number; readonly reason: string };

export interface Limits {
  readonly min: number;
  readonly max: number;
}

export function limitsFault(parameter: string, value: number, { min, max }: Limits): TimingFault | undefined {
  if (Number.isInteger(value) && value >= min && value <= max) return undefined;
  return { parameter, value, min, max };
}

/** A message must become visible before it expires. */
export function putFault(visibilitySeconds: number, ttlSeconds: number): TimingFault | undefined {
  const visibilityFault = limitsFault('visibilitytimeout', visibilitySeconds, { min: 0, max: VISIBILITY_SECONDS_MAX });
  if (visibilityFault) return visibilityFault;
  if (ttlSeconds > TTL_SECONDS_MAX) return limitsFault('messagettl', ttlSeconds, { min: 1, max: TTL_SECONDS_MAX });
  const isValidTtl = Number.isInteger(ttlSeconds) && ttlSeconds >= 1;
  if (ttlSeconds !== TTL_NEVER && !isValidTtl)
    return { parameter: 'messagettl', value: ttlSeconds, reason: 'messagettl must be positive, or -1.' };
  if (ttlSeconds === TTL_NEVER || visibilitySeconds < ttlSeconds) return undefined;
  const reason = 'messagettl must be greater than visibilitytimeout.';
  return { parameter: 'visibilitytimeout', value: visibilitySeconds, reason };
}

export function addSeconds(now: Instant, seconds: number): Instant {
  return now + BigInt(seconds) * TICKS_PER_SECOND;
}

export function expiryTime(now: Instant, ttlSeconds: number): Instant {
  if (ttlSeconds === TTL_NEVER) return NEVER;
  const expires = addSeconds(now, ttlSeconds);
  return expires < NEVER ? expires : NEVER;
}

/** A message that is invisible until it expires would never be seen again. */
export function updateFault(now: Instant, visibilitySeconds: number, expires: Instant): TimingFault | undefined {
  if (addSeconds(now, visibilitySeconds) <= expires) return undefined;
  const reason = 'visibilitytimeout must not be later than the expiry of the message.';
  return { parameter: 'visibilitytimeout', value: visibilitySeconds, reason };
}

/**
 * @param storedAt the instant of the commit. If the process that committed the message has a clock that is ahead, a message that was to be
 *   visible at once is visible
 */
export function isVisible(visibleAt: Instant, storedAt: Instant, now: Instant): boolean {
  return visibleAt <= now || visibleAt <= storedAt;
}
