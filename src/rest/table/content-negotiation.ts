/** Content negotiation by Accept, $format and Prefer. */
import { memoize } from '../../base/memoize.ts';
import type { MetadataLevel } from './json/write-entity.ts';

/** On every answer of the Table service that is not XML. */
export const COMMON_HEADERS = { 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-cache' };

const LEVELS: readonly MetadataLevel[] = ['nometadata', 'minimalmetadata', 'fullmetadata'];
const DEFAULT_LEVEL: MetadataLevel = 'minimalmetadata';

/** JSON with a level of metadata, or a format that is not supported. */
export type NegotiatedFormat = { readonly level: MetadataLevel } | 'atom' | 'unknown';

export function jsonType(level: MetadataLevel): string {
  return `application/json;odata=${level};streaming=true;charset=utf-8`;
}

/** $format has precedence over Accept. Of the types in Accept the first supported one. */
export function negotiateFormat(accept: string | undefined, format: string | undefined): NegotiatedFormat {
  if (format) return format.toLowerCase() === 'json' ? { level: DEFAULT_LEVEL } : parseMediaType(format);
  return accept === undefined ? { level: DEFAULT_LEVEL } : negotiateAccept(accept);
}

const negotiateAccept = memoize((accept): NegotiatedFormat => {
  if (accept.trim() === '') return { level: DEFAULT_LEVEL };
  let unsupported: NegotiatedFormat = 'unknown';
  for (const type of accept.split(',')) {
    const wanted = parseMediaType(type);
    if (typeof wanted === 'object') return wanted;
    if (wanted === 'atom') unsupported = wanted;
  }
  return unsupported;
});

function parseMediaType(text: string): NegotiatedFormat {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  if (type === 'atom' || type === 'application/atom+xml' || type === 'application/xml' || type === 'text/xml') {
    return 'atom';
  }
  if (type !== 'application/json' && type !== 'application/*' && type !== '*/*') return 'unknown';
  const odata = parameters.find((parameter) => parameter.startsWith('odata='))?.slice('odata='.length);
  if (odata === undefined || type !== 'application/json') return { level: DEFAULT_LEVEL };
  const level = LEVELS.find((one) => one === odata);
  return level === undefined ? 'unknown' : { level };
}

export type Preference = 'return-content' | 'return-no-content';

/** Ignores other preferences, as RFC 7240 allows. */
export function parsePreference(prefer: string | string[] | undefined): Preference | undefined {
  if (prefer === undefined) return undefined;
  for (const part of String(prefer).split(',')) {
    const value = part.trim().toLowerCase();
    if (value === 'return-content' || value === 'return-no-content') return value;
  }
  return undefined;
}
