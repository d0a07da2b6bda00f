/** Errors that Azure has a code for. Services throw codes; each front end writes them in the form of its protocol. */
import { REFUSAL_TEXT_MAX } from '../../base/input-limits.ts';
import { CorruptChunk, NoSpace } from '../../content/content.ts';
import { DiskFull, OutcomeUnknown, Unavailable } from '../../partition/partition.ts';

/** Of a code: status, message, and the code on the wire where it differs. */
type ErrorRow = readonly [status: number, message: string, wireCode?: string];
type ErrorTable = Readonly<Record<string, ErrorRow>>;

/** The elements after the message, in their order: HeaderName, QueryParameterValue, LineNumber ... */
export type Details = Readonly<Record<string, string>>;

/** An answer, not a bug: it has no stack, which would cost more than the request. */
export class StorageError extends Error {
  override readonly name = 'StorageError';
  readonly code: string;
  readonly status: number;
  readonly details: Details | undefined;
  /** The value of Retry-After. */
  readonly retryAfterSeconds: number | undefined;

  /** Additional headers of the answer. */
  headers: Readonly<Record<string, string>> | undefined;

  constructor(code: string, status: number, message: string, details?: Details, retryAfterSeconds?: number) {
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    super(truncate(message));
    Error.stackTraceLimit = limit;
    this.code = code;
    this.status = status;
    this.details = details && truncateAll(details);
    this.retryAfterSeconds = retryAfterSeconds;
  }

  withHeaders(headers: Readonly<Record<string, string>>): this {
    this.headers = headers;
    return this;
  }
}

/** A name, header or text of the request may be as long as the request. */
function truncate(text: string): string {
  return text.length <= REFUSAL_TEXT_MAX ? text : `${text.slice(0, REFUSAL_TEXT_MAX)}...`;
}

function truncateAll(details: Details): Details {
  const changed: Record<string, string> = {};
  for (const name in details) changed[name] = truncate(details[name]!);
  return changed;
}

export function errorTable<const Table extends ErrorTable>(table: Table): Table {
  return table;
}

type ErrorFactory<Code extends string> = (code: Code, details?: Details, message?: string) => StorageError;

/** `const fail = errorFactory(blobErrors); throw fail('BlobNotFound')`: a misspelt code does not compile. */
export function errorFactory<Table extends ErrorTable>(table: Table): ErrorFactory<keyof Table & string> {
  return (code, details, message) => {
    const row: ErrorRow = table[code]!;
    return new StorageError(row[2] ?? code, row[0], message ?? row[1], details);
  };
}

/** The answer to a caller for this error; undefined: it is a bug. */
export function asStorageError(error: unknown): StorageError | undefined {
  if (error instanceof StorageError) return error;
  if (error instanceof Unavailable || error instanceof OutcomeUnknown || error instanceof NoSpace)
    return new StorageError('ServerBusy', 503, error.message, undefined, 1);
  if (isCorruption(error)) return corruptionError();
  if (error instanceof Error && OUT_OF_FILES.has((error as NodeJS.ErrnoException).code ?? '')) {
    return new StorageError('ServerBusy', 503, 'Too many files and connections are open.', undefined, 1);
  }
  return undefined;
}

/** Whether a write was refused because the disk, or the memory for data, is full. */
export function isOutOfSpace(error: unknown): error is Error {
  return error instanceof NoSpace || error instanceof DiskFull;
}

/** Whether stored bytes are not those that were written. */
export function isCorruption(error: unknown): error is Error {
  return error instanceof CorruptChunk;
}

/**
 * Azure has no code for it. Every SDK retries 500 and 503, some all of 5xx, for a minute and more, and a retry reads the same bytes: so it is
 * of the client errors, which none of them retries.
 */
const corruptionError = (): StorageError =>
  new StorageError(
    'DataCorrupted',
    409,
    'The stored bytes are damaged, and reading them again will not help: write them again, or restore a copy. See holdfast check.',
  );

const OUT_OF_FILES = new Set(['EMFILE', 'ENFILE']);

/** The codes that all services share. */
export const commonErrors = errorTable({
  BothCrc64AndMd5HeaderPresent: [400, 'Both x-ms-content-crc64 header and Content-MD5 header are present.'],
  UnsatisfiableCondition: [400, 'The request includes an unsatisfiable condition for this operation.'],
  ConditionNotMet: [412, 'The condition specified using HTTP conditional header(s) is not met.'],
  /** A read whose "only if changed" test fails: the caller's copy is still good. */
  NotModified: [304, 'The condition specified using HTTP conditional header(s) is not met.', 'ConditionNotMet'],
  ConditionHeadersNotSupported: [400, 'Condition headers are not supported.'],
  EmptyMetadataKey: [400, 'The key for one of the metadata key-value pairs is empty.'],
  InvalidAuthenticationInfo: [
    400,
    'Authentication information is not given in the correct format. Check the value of Authorization header.',
  ],
  InvalidHeaderValue: [400, 'The value for one of the HTTP headers is not in the correct format.'],
  InvalidHttpVerb: [400, 'The HTTP verb specified is invalid - it is not recognized by the server.'],
  InvalidInput: [400, 'One of the request inputs is not valid.'],
  InvalidMd5: [
    400,
    'The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64-encoded.',
  ],
  InvalidMetadata: [400, 'The metadata specified is invalid. It has characters that are not permitted.'],
  InvalidQueryParameterValue: [400, 'Value for one of the query parameters specified in the request URI is invalid.'],
  /** The misspelling is the service's own. */
  InvalidResourceName: [400, 'The specifed resource name contains invalid characters.'],
  InvalidStructuredMessage: [400, 'The structured message in the body of the request is not valid.'],
  InvalidUri: [400, 'The requested URI does not represent any resource on the server.'],
  InvalidXmlDocument: [400, 'XML specified is not syntactically valid.'],
  InvalidXmlNodeValue: [400, 'The value for one of the XML nodes is not in the correct format.'],
  Md5Mismatch: [
    400,
    'The MD5 value specified in the request did not match with the MD5 value calculated by the server.',
  ],
  Crc64Mismatch: [
    400,
    'The CRC64 value specified in the request did not match with the CRC64 value calculated by the server.',
  ],
  MetadataTooLarge: [400, 'The metadata specified exceeds the maximum permissible limit (8KB).'],
  MissingRequiredHeader: [400, "An HTTP header that's mandatory for this request is not specified."],
  MissingRequiredQueryParameter: [400, "A query parameter that's mandatory for this request is not specified."],
  MissingRequiredXmlNode: [400, "An XML node that's mandatory for this request is not specified."],
  MultipleConditionHeadersNotSupported: [400, 'Multiple condition headers are not supported.'],
  MutuallyExclusiveQueryParameters: [400, 'Query parameters that are specified in the request URI exclude each other.'],
  OutOfRangeInput: [400, 'One of the request inputs is out of range.'],
  OutOfRangeQueryParameterValue: [
    400,
    'One of the query parameters specified in the request URI is outside the permissible range.',
  ],
  RequestUrlFailedToParse: [400, 'The url in the request could not be parsed.'],
  UnsupportedHeader: [400, 'One of the headers specified in the request is not supported.'],
  UnsupportedQueryParameter: [400, 'One of the query parameters specified in the request URI is not supported.'],
  UnsupportedXmlNode: [400, 'One of the XML nodes specified in the request body is not supported.'],
  NoAuthenticationInformation: [
    401,
    'Server failed to authenticate the request. Please refer to the information in the www-authenticate header.',
  ],
  /** A bearer token that can be parsed, but is not accepted. */
  BearerTokenRefused: [
    401,
    'Server failed to authenticate the request. Please refer to the information in the www-authenticate header.',
    'InvalidAuthenticationInfo',
  ],
  AuthenticationFailed: [
    403,
    'Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.',
  ],
  AccountIsDisabled: [403, 'The specified account is disabled.'],
  AuthorizationFailure: [403, 'This request is not authorized to perform this operation.'],
  AuthorizationPermissionMismatch: [
    403,
    'This request is not authorized to perform this operation using this permission.',
  ],
  AuthorizationProtocolMismatch: [403, 'This request is not authorized to perform this operation using this protocol.'],
  AuthorizationResourceTypeMismatch: [
    403,
    'This request is not authorized to perform this operation using this resource type.',
  ],
  AuthorizationServiceMismatch: [403, 'This request is not authorized to perform this operation using this service.'],
  AuthorizationSourceIPMismatch: [
    403,
    'This request is not authorized to perform this operation using this source IP.',
  ],
  InsufficientAccountPermissions: [
    403,
    'The account being accessed does not have sufficient permissions to execute this operation.',
  ],
  ResourceNotFound: [404, 'The specified resource does not exist.'],
  UnsupportedHttpVerb: [405, "The resource doesn't support specified Http Verb."],
  MissingContentLengthHeader: [411, 'Content-Length HTTP header is not specified.'],
  RequestBodyTooLarge: [413, 'The request body is too large and exceeds the maximum permissible limit.'],
  InvalidRange: [416, 'The range specified is invalid for the current size of the resource.'],
  InternalError: [500, 'The server encountered an internal error. Please retry the request.'],
  OperationTimedOut: [500, 'Operation could not be completed within the specified time.'],
  NotImplemented: [501, 'The requested operation is not implemented on the specified resource.'],
  ServerBusy: [503, 'The server is busy.'],
});
