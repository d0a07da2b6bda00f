/**
 * Limits of everything that a client can repeat in one request, so that processing takes at most a few milliseconds. A request above a
 * limit is refused before the work. Limits in bytes that belong to one format, such as a page of entities, are in the module of that format.
 */

/** Of the query, in all services; Azure's longest operation with a shared access signature has about 30. rest/request.ts: 400. */
export const QUERY_PARAMETERS_MAX = 256;

/** Of a request, metadata included; clients send fewer than 200. rest/http/connections.ts: 431. */
export const HEADERS_MAX = 1_024;

/** Of one element in the body of a request; none of Azure's has more than one. base/xml.ts: 400. */
export const XML_ATTRIBUTES_MAX = 16;

/** Comments, processing instructions and CDATA sections of a document, besides one for each element. base/xml.ts: 400. */
export const XML_ASIDES_MAX = 1_024;

/** Characters between two tags, and of all comments together. The longest are messages of a queue: 64 KiB, each character as a reference of up to ten. base/xml.ts: 400. */
export const XML_TEXT_MAX = 10 * (64 << 10);

/** The same in a block list, whose ids have 88 characters. rest/blob/block-lists.ts: 400. */
export const BLOCK_LIST_TEXT_MAX = 16 << 10;

/** Characters of one text in an error response, so that at most this much of the request comes back. services/common/errors.ts. */
export const REFUSAL_TEXT_MAX = 4 << 10;

/** Of one JSON object, or of all objects in the body of a request together. An entity has 255 properties, and a type for each. rest/table/json/read-object.ts: 400. */
export const JSON_MEMBERS_MAX = 2_048;

/** Names in `$select`; an entity has no more than 255 properties. rest/table/params.ts: 400. */
export const SELECT_NAMES_MAX = 255;

/** Characters of one string: 32 Ki characters, each written as `\uXXXX`. rest/table/json/read-object.ts: 400. */
export const JSON_STRING_MAX = 6 * (32 << 10) + 2;

/** Characters of one number, and of white space between two tokens. rest/table/json/read-object.ts: 400. */
export const JSON_NUMBER_MAX = 1_024;
export const JSON_SPACE_MAX = 64 << 10;

/** Tokens of `$filter`: fifteen comparisons, each in as many parentheses and negations as may be nested. rules/table/filter-lexer.ts: 400. */
export const FILTER_TOKENS_MAX = 5_000;

/** Header lines of one part of a batch. rest/multipart.ts: 400. */
export const PART_HEADERS_MAX = 64;

/** Sequences in a batch that look like a boundary and are none. rest/multipart.ts: 400. */
export const FALSE_BOUNDARIES_MAX = 1_024;

/** Comparisons of `where` in Find Blobs by Tags, and of x-ms-if-tags; a blob has ten tags. rules/tag-filter.ts: 400. */
export const TAG_COMPARISONS_MAX = 64;

/** UTF-16 units of the search pattern of a QUERY_DIRECTORY, as of a name. smb/handlers/query-directory.ts: STATUS_OBJECT_NAME_INVALID. */
export const SEARCH_PATTERN_MAX = 255;

/** Of one FSCTL_SRV_COPYCHUNK; Windows has the same. smb/handlers/copy-chunks.ts: STATUS_INVALID_PARAMETER, with the limits. */
export const COPY_CHUNKS_MAX = 256;
