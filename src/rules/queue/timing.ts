/** How long messages live, and how long they hide. */
import { TICKS_PER_SECOND } from '../../base/time.ts';

type Instant = bigint;

const WEEK_SECONDS = 604_800;
export const VISIBILITY_SECONDS_MAX = WEEK_SECONDS;
export const TTL_SECONDS_DEFAULT = WEEK_SECONDS;
/** What a time-to-live says of a message that does not expire. */
export const TTL_NEVER = -1;
const TTL_SECONDS_MAX = 2 ** 31 - 1;
/** The last instant of the year 9999. */
export const NEVER: Instant = 3_155_378_975_999_999_999n;

/** What is wrong with a parameter: out of these bounds, or no use at all. */
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

/** A message must be seen before it expires. */
export function putFault(visibilitySeconds: number, ttlSeconds: number): TimingFault | undefined {
  const hidden = limitsFault('visibilitytimeout', visibilitySeconds, { min: 0, max: VISIBILITY_SECONDS_MAX });
  if (hidden) return hidden;
  if (ttlSeconds > TTL_SECONDS_MAX) return limitsFault('messagettl', ttlSeconds, { min: 1, max: TTL_SECONDS_MAX });
  const isLifetime = Number.isInteger(ttlSeconds) && ttlSeconds >= 1;
  if (ttlSeconds !== TTL_NEVER && !isLifetime)
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

/** Hidden past its end a message would never be seen again. */
export function updateFault(now: Instant, visibilitySeconds: number, expires: Instant): TimingFault | undefined {
  if (addSeconds(now, visibilitySeconds) <= expires) return undefined;
  const reason = 'visibilitytimeout must not be later than the expiry of the message.';
  return { parameter: 'visibilitytimeout', value: visibilitySeconds, reason };
}

/**
 * @param storedAt when it came to its place. A process whose clock is a little ahead may have put it: what was to be seen at once
 *   can be seen
 */
export function isVisible(visibleAt: Instant, storedAt: Instant, now: Instant): boolean {
  return visibleAt <= now || visibleAt <= storedAt;
}
