/** Validation of a request before any row is read. */
import { queueNameFault } from '../../rules/queue/names.ts';
import { parseReceipt, type Receipt } from '../../rules/queue/receipts.ts';
import { limitsFault, type TimingFault, VISIBILITY_SECONDS_MAX } from '../../rules/queue/timing.ts';
import { fail } from './errors.ts';

const MESSAGES_MAX = 32;
const TEXT_BYTES_MAX = 64 << 10;

export function checkQueueName(name: string): void {
  const fault = queueNameFault(name);
  if (fault) throw fail(fault);
}

export function checkMessageCount(count: number): void {
  throwIfFault(limitsFault('numofmessages', count, { min: 1, max: MESSAGES_MAX }));
}

/** @param min a dequeued message is invisible for at least a second */
export function checkVisibility(seconds: number, min: 0 | 1): void {
  throwIfFault(limitsFault('visibilitytimeout', seconds, { min, max: VISIBILITY_SECONDS_MAX }));
}

export function throwIfFault(fault: TimingFault | undefined): void {
  if (!fault) return;
  const named = { QueryParameterName: fault.parameter, QueryParameterValue: String(fault.value) };
  if ('reason' in fault) throw fail('InvalidQueryParameterValue', { ...named, Reason: fault.reason });
  const allowed = { MinimumAllowed: String(fault.min), MaximumAllowed: String(fault.max) };
  throw fail('OutOfRangeQueryParameterValue', { ...named, ...allowed });
}

export function checkMessageText(text: string): void {
  // A UTF-16 unit takes at most three bytes of UTF-8.
  if (text.length * 3 <= TEXT_BYTES_MAX || Buffer.byteLength(text) <= TEXT_BYTES_MAX) return;
  throw fail('RequestBodyTooLarge', { MaxLimit: String(TEXT_BYTES_MAX) });
}

export function checkReceipt(text: string): Receipt {
  const receipt = parseReceipt(text);
  if (receipt) return receipt;
  const named = { QueryParameterName: 'popreceipt', QueryParameterValue: text };
  throw fail('InvalidQueryParameterValue', { ...named, Reason: 'Invalid pop receipt value.' });
}
