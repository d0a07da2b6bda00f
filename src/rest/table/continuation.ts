/** Continuation tokens: `1!8!MTAxMg--`. */
import { fail } from './errors.ts';

const TOKEN = /^1!(\d{1,6})!([A-Za-z0-9_*-]*)$/;

/** Base64, with characters that need no encoding in a URL. */
export function encodeToken(text: string): string {
  const encoded = encodeText(text).toString('base64').replaceAll('=', '-').replaceAll('/', '_').replaceAll('+', '*');
  return `1!${encoded.length}!${encoded}`;
}

export function decodeToken(token: string): string {
  const [, length, encoded = ''] = TOKEN.exec(token) ?? [];
  if (length === undefined || Number(length) !== encoded.length) throw fail('InvalidInput');
  const base64 = encoded.replaceAll('-', '=').replaceAll('_', '/').replaceAll('*', '+');
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64') !== base64) throw fail('InvalidInput');
  return decodeText(bytes);
}

/** Marks UTF-16, for keys with an unpaired surrogate. No UTF-8 text begins with this byte. */
const UTF16 = 0xff;

function encodeText(text: string): Buffer {
  const bytes = Buffer.from(text);
  return bytes.toString() === text ? bytes : Buffer.concat([Buffer.of(UTF16), Buffer.from(text, 'utf16le')]);
}

function decodeText(bytes: Buffer): string {
  return bytes[0] === UTF16 ? bytes.toString('utf16le', 1) : bytes.toString();
}
