import { kept } from '../../base/kept.ts';
import { PROPERTY_NAME_MAX } from '../../rules/table/edm.ts';
import { jsonText } from '../../rules/table/edm-text.ts';

/** The name of a property, with all that follows from it. */
export interface PropertyName {
  readonly fault: 'PropertyNameTooLong' | 'PropertyNameInvalid' | undefined;
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

export const propertyName = kept((name): PropertyName => {
  const bytes = Buffer.from(jsonText(name).slice(1, -1), 'latin1');
  const json = bytes.toString('latin1');
  return { fault: faultOf(name), json, bytes, hash: hashOf(json), starts: [] };
});

function faultOf(name: string): PropertyName['fault'] {
  if (name.length > PROPERTY_NAME_MAX) return 'PropertyNameTooLong';
  return IDENTIFIER.test(name) ? undefined : 'PropertyNameInvalid';
}

function hashOf(json: string): number {
  const first = json.charCodeAt(0);
  const middle = json.charCodeAt(json.length >> 1);
  return (json.length ^ (first << 3) ^ (middle << 1) ^ json.charCodeAt(json.length - 1)) & 0xff;
}
