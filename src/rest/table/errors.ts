/** Error replies of the Table service: JSON, or XML for operations that answer in XML. */
import type { IncomingMessage } from 'node:http';
import { formatIso7 } from '../../base/time.ts';
import { escapeXml } from '../../base/xml.ts';
import { errorFactory, errorTable, type StorageError } from '../../services/common/errors.ts';
import { tableErrors } from '../../services/table/errors.ts';
import { errorHeaders, type Reply, xmlReply } from '../reply.ts';
import type { ErrorReply } from '../service.ts';
import { COMMON_HEADERS, jsonType, negotiateFormat, parsePreference } from './replies.ts';

/** Errors of the service, and those of the protocol. */
const wireErrors = errorTable({
  ...tableErrors,
  AtomFormatNotSupported: [415, 'Atom format is not supported.'],
  BatchSyntax: [400, 'The batch request could not be read.', 'InvalidInput'],
  BothMatchHeaders: [
    400,
    'Both If-Match and If-None-Match HTTP headers cannot be specified at the same time. Please specify either one of the headers or none of them.',
    'InvalidInput',
  ],
  MatchWithoutEtag: [
    400,
    'If-Match or If-None-Match headers cannot be specified if the target type does not have etag properties defined.',
    'InvalidInput',
  ],
  MediaTypeNotSupported: [415, 'None of the provided media types are supported'],
  QuerySyntax: [400, 'Bad Request - Error in query syntax.', 'InvalidInput'],
  XMethodIncorrectCount: [400, 'More than one X-HTTP-Method is specified.'],
  XMethodIncorrectValue: [400, 'The specified X-HTTP-Method is invalid.'],
  XMethodNotUsingPost: [400, 'The request uses X-HTTP-Method with an HTTP verb other than POST.'],
});

export const fail = errorFactory(wireErrors);

export const tableErrorReply: ErrorReply = (error, requestId, now, incoming) => {
  const { method = '', headers, url = '' } = incoming;
  const message = formatErrorMessage(error, requestId, now);
  if (wantsXml(incoming)) {
    const xmlHeaders = { ...errorHeaders(error), 'x-ms-error-code': error.code };
    if (method === 'HEAD') return { status: error.status, headers: { ...xmlHeaders, 'Transfer-Encoding': 'chunked' } };
    return xmlReply(error.status, errorXml(error, message), xmlHeaders);
  }
  const query = new URLSearchParams(url.slice(url.indexOf('?') + 1));
  const wanted = negotiateFormat(headers.accept, query.get('$format') ?? undefined);
  return jsonError(error, message, {
    type: jsonType(typeof wanted === 'string' ? 'minimalmetadata' : wanted.level),
    preference: method === 'POST' ? parsePreference(headers.prefer) : undefined,
  });
};

/** `type`: the content type that a successful answer would have. */
export function jsonError(
  error: StorageError,
  message: string,
  { type, preference }: { readonly type: string; readonly preference?: string | undefined },
): Reply {
  const value = { code: error.code, message: { lang: 'en-US', value: message } };
  const headers = isAuthenticationError(error)
    ? { 'Content-Type': 'application/json', 'x-ms-error-code': error.code }
    : { ...COMMON_HEADERS, 'Preference-Applied': preference, 'Content-Type': type };
  return {
    status: error.status,
    headers: { ...headers, ...errorHeaders(error) },
    body: JSON.stringify({ 'odata.error': value }),
  };
}

export function formatErrorMessage({ message }: Pick<StorageError, 'message'>, requestId: string, now: bigint): string {
  return `${message}\nRequestId:${requestId}\nTime:${formatIso7(now)}`;
}

const METADATA = 'http://schemas.microsoft.com/ado/2007/08/dataservices/metadata';

function errorXml({ code }: StorageError, message: string): string {
  return (
    `<m:error xmlns:m="${METADATA}"><m:code>${code}</m:code>` +
    `<m:message xml:lang="en-US">${escapeXml(message)}</m:message></m:error>`
  );
}

/** ACLs, properties and stats are XML, and so are their errors. */
function wantsXml({ url = '', headers }: IncomingMessage): boolean {
  if (/[?&]comp=/i.test(url)) return true;
  const accept = headers.accept?.toLowerCase() ?? '';
  return accept.includes('xml') && !accept.includes('json');
}

/** Errors of authentication are sent without content negotiation. */
function isAuthenticationError({ code }: StorageError): boolean {
  return (
    code === 'AuthenticationFailed' || code === 'InvalidAuthenticationInfo' || code === 'NoAuthenticationInformation'
  );
}
