/** The headers of structured bodies: of a request that has one or wants one as its reply, and of the reply. */
import { commonErrors, errorFactory } from '../../services/common/errors.ts';
import type { Request } from '../operation.ts';
import { overheadBytes, SEGMENTS_MAX } from './message-format.ts';

const fail = errorFactory(commonErrors);

const TYPE = 'XSM/1.0; properties=crc64';
const TYPE_PATTERN = /^XSM\/1\.0\s*;\s*properties\s*=\s*crc64$/i;
const TYPE_HEADER = 'x-ms-structured-body';
const LENGTH_HEADER = 'x-ms-structured-content-length';

/** How much longer than its content a structured body can be. */
export const STRUCTURED_OVERHEAD_MAX = overheadBytes(SEGMENTS_MAX);

/** The type with which the reply confirms that of the request; undefined: nothing about the request is structured. */
export function structuredType({ headers }: Request): string | undefined {
  const type = headers[TYPE_HEADER];
  if (type === undefined) return undefined;
  if (!TYPE_PATTERN.test(String(type))) {
    throw fail('InvalidHeaderValue', { HeaderName: TYPE_HEADER, HeaderValue: String(type) });
  }
  return TYPE;
}

/** The length of the content in a structured body; undefined: the body is not structured. */
export function structuredLength(request: Request): number | undefined {
  const text = request.headers[LENGTH_HEADER];
  const isStructured = structuredType(request) !== undefined;
  if (isStructured !== (text !== undefined)) {
    throw fail('MissingRequiredHeader', { HeaderName: isStructured ? LENGTH_HEADER : TYPE_HEADER });
  }
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(String(text))) {
    throw fail('InvalidHeaderValue', { HeaderName: LENGTH_HEADER, HeaderValue: String(text) });
  }
  return Number(text);
}

/** The length of the content that the request sends. */
export function sentLength(request: Request): number {
  return structuredLength(request) ?? Number(request.headers['content-length']);
}
