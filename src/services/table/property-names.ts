import { memoize } from '../../base/memoize.ts';
import { formatJsonString } from '../../rules/table/edm-format.ts';

/** The name of a property, with all that follows from it. */
export interface PropertyName {
  readonly isValid: boolean;
  /** As JSON has it, without its quotes. */
  readonly json: string;
  readonly bytes: Buffer;
  /** Tells most names apart without looking at them. */
  readonly hash: number;
  /** What stands before a value, by the code of its type, as far as that was asked for. */
  readonly starts: string[];
}

/** What C# takes for a name. */
const IDENTIFIER = /^[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}\p{Cf}]*$/u;

export const propertyName = memoize((name): PropertyName => {
  const bytes = Buffer.from(formatJsonString(name).slice(1, -1), 'latin1');
  const json = bytes.toString('latin1');
  return { isValid: IDENTIFIER.test(name), json, bytes, hash: nameHash(json), starts: [] };
});

function nameHash(json: string): number {
  const first = json.charCodeAt(0);
  const middle = json.charCodeAt(json.length >> 1);
  return (json.length ^ (first << 3) ^ (middle << 1) ^ json.charCodeAt(json.length - 1)) & 0xff;
}
