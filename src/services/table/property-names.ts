/** Property names with all that is derived from them, memoized: entities repeat the same few names. */
import { copyString, memoize } from '../../base/memoize.ts';
import { formatJsonString } from '../../rules/table/canonical-json.ts';

export interface PropertyName {
  readonly text: string;
  readonly isValid: boolean;
  /** JSON text without its quotes. */
  readonly json: string;
  readonly bytes: Buffer;
  /** Eight bits: most names differ in it, and are then not compared. */
  readonly hash: number;
  /** The text before a value, by type code; filled in when first needed. */
  readonly starts: string[];
}

/** An identifier of C#. */
const IDENTIFIER = /^[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}\p{Cf}]*$/u;

export const propertyName = memoize((name): PropertyName => {
  const bytes = Buffer.from(formatJsonString(name).slice(1, -1), 'latin1');
  const json = bytes.toString('latin1');
  return { text: copyString(name), isValid: IDENTIFIER.test(name), json, bytes, hash: nameHash(json), starts: [] };
});

function nameHash(json: string): number {
  const first = json.charCodeAt(0);
  const middle = json.charCodeAt(json.length >> 1);
  return (json.length ^ (first << 3) ^ (middle << 1) ^ json.charCodeAt(json.length - 1)) & 0xff;
}
