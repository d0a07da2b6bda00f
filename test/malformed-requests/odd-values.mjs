/** Values that readers, parsers and stores have tripped over. Latin-1 text: one character is one byte on the wire. */

const bytes = (/** @type {string} */ text) => Buffer.from(text).toString('latin1');

// biome-ignore format: a table
export const oddValues = [
  '', ' ', '0', '-0', '-1', '1', '00', '1.5', '1e9', '0x10', 'NaN', 'Infinity', '2147483648', '9007199254740993',
  '99999999999999999999', 'null', 'undefined', 'true', 'TRUE', 'false', '__proto__', 'constructor', 'toString',
  'hasOwnProperty', '*', '"', '"*"', '""', 'W/"x"', '"a","b"', ',', ',,', ';', ':', '=', '&', '?', '#', '%', '%zz',
  '%00', '%2F', '%ED%A0%80', '<', '>', '&amp;', '<!--', ']]>', '{}', '[]', '{aaaaaaaa-0000-4000-8000-00000000000a}',
  'aaaaaaaa-0000-4000-8000-00000000000a', 'bbbbbbbb-0000-4000-8000-00000000000b', '(aaaaaaaa000040008000a)', 'bytes=0-',
  'bytes=0-0', 'bytes=-5', 'bytes=-0', 'bytes=5-2', 'bytes=99999-', 'bytes=0-99999999999999999999', 'bytes=0-1,3-4', 'bytes=',
  'items=0-1', 'Thu, 01 Jan 1970 00:00:00 GMT', 'Fri, 31 Dec 9999 23:59:59 GMT', 'Mon, 99 Foo 2020 99:99:99 GMT',
  '2020-01-01T00:00:00Z', '2020-01-01T00:00:00.0000000Z', '0001-01-01', '9999-12-31', '2026-13-45', 'BlockBlob',
  'PageBlob', 'AppendBlob', 'acquire', 'renew', 'change', 'release', 'break', 'include', 'only', 'container', 'blob',
  'YQ==', 'YQ', 'YR==', 'AAA=', '====', 'AAAAAAAAAAAAAAAAAAAAAA==', 'AAAAAAAAAAA=', '!!!!', 'application/xml',
  'text/plain; charset="', 'http://', 'http://[::1', 'https://example.invalid/a/b', '{origin}/{container}/{blob}',
  '{origin}/{container}/{blob}?snapshot=x', '{origin}/{container}/', '{origin}//', '/', '\\', '..', '../..', '//', '\t',
  bytes('é'), bytes('\u{1f600}'), bytes('\u202e'), bytes('\ufeff'), '\xff\xfe', '\x80', bytes('\ud800'),
  'a'.repeat(300), 'a'.repeat(9_000), ' a ', 'a  b', 'a\tb',
];

// biome-ignore format: a table
export const oddSegments = [
  '', '.', '..', '%2e%2e', '%2E', '%00', '%2F', 'a%2Fb', 'a//b', '/', '//', '%5C', '%', '%z', '%zz', '%u0041',
  '%ED%A0%80', '%C0%AF', '%FF', '%F0%9F%98%80', '%E2%80%AE', '%EF%BB%BF', '%EF%BF%BF', '$root', '$logs', '$web',
  'UPPER', 'a_b', 'a--b', '-a', 'ab', 'name.', 'name%20', '%20', '+', '%2B', 'a+b', 'a b', '~', "'", '(', '!', '*', ':',
  '@', ';', '=', '&', '%3F', '%26', '%23', '%25', '%2525', '%09', '%0A', '%0D%0A', '%7F', '__proto__', 'a'.repeat(63),
  'a'.repeat(64), 'a'.repeat(1_024), 'a'.repeat(1_025), 'a/'.repeat(254), 'a/'.repeat(260), '%E2%82%AC'.repeat(400),
  '\xe9', '\xff',
];

// biome-ignore format: a table
export const oddMethods = [
  'GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'PATCH', 'OPTIONS', 'MERGE', 'TRACE', 'PROPFIND', 'get', 'FOO',
];

// biome-ignore format: a table
export const oddQueries = [
  'comp=list', 'comp=block', 'comp=blocklist', 'comp=metadata', 'comp=properties', 'comp=lease', 'comp=copy',
  'comp=acl', 'comp=tags', 'comp=tier', 'comp=snapshot', 'comp=page', 'comp=appendblock', 'comp=batch', 'comp=stats',
  'comp=undelete', 'comp=userdelegationkey', 'comp=blobs', 'comp=incrementalcopy', 'comp=', 'comp', 'comp=nothing',
  'restype=container', 'restype=service', 'restype=account', 'restype=', 'restype=directory',
  'snapshot=2020-01-01T00:00:00.0000000Z', 'versionid=x', 'blockid=YQ==', 'blockid=', 'blockid=%00',
  'blocklisttype=all', 'blocklisttype=x', 'maxresults=0', 'maxresults=1', 'maxresults=5001', 'maxresults=x', 'marker=x',
  'marker=', 'marker=2!8!AAAAAAAA', 'prefix=%ED%A0%80', 'prefix=a', 'prefix=', 'delimiter=/', 'delimiter=',
  'delimiter=%00', 'delimiter=%F0%9F%98%80', 'include=metadata', 'include=', 'include=,', 'include=x',
  'include=snapshots,metadata,uncommittedblobs,copy,deleted', 'timeout=0', 'timeout=30', 'timeout=x', 'copyid=x',
  'copyid=aaaaaaaa-0000-4000-8000-00000000000a', 'api-version=2020-10-02', 'where=a', 'sv=2021-06-08', 'sig=x',
  'se=2030-01-01', 'sp=r', 'sr=b', 'si=one', '=', '=x', '&', 'x', '%', '%zz=1', 'a=%zz', '__proto__=1', 'COMP=list',
  'Comp=List', 'comp=list&comp=block', 'restype=container&restype=service',
];

// biome-ignore format: a table
export const oddHeaders = [
  'x-ms-lease-id', 'x-ms-lease-action', 'x-ms-lease-duration', 'x-ms-lease-break-period', 'x-ms-proposed-lease-id',
  'If-Match', 'If-None-Match', 'If-Modified-Since', 'If-Unmodified-Since', 'Range', 'x-ms-range', 'If-Range',
  'x-ms-range-get-content-md5', 'x-ms-range-get-content-crc64', 'x-ms-blob-type', 'x-ms-copy-source',
  'x-ms-copy-action', 'x-ms-source-if-match', 'x-ms-source-if-none-match', 'x-ms-source-if-modified-since',
  'x-ms-source-lease-id', 'x-ms-requires-sync', 'x-ms-delete-snapshots', 'x-ms-blob-public-access', 'x-ms-meta-a',
  'x-ms-meta-', 'x-ms-meta-a-b', 'x-ms-meta-__proto__', 'x-ms-version', 'x-ms-client-request-id', 'x-ms-tags',
  'x-ms-access-tier', 'x-ms-encryption-key', 'x-ms-blob-content-type', 'x-ms-blob-content-md5',
  'x-ms-blob-content-encoding', 'x-ms-blob-content-language', 'x-ms-blob-content-disposition',
  'x-ms-blob-cache-control', 'x-ms-blob-content-length', 'x-ms-content-crc64', 'Content-MD5', 'Content-Type',
  'Content-Encoding', 'Content-Language', 'Cache-Control', 'Content-Disposition', 'Date', 'Origin',
  'Access-Control-Request-Method', 'Access-Control-Request-Headers', 'Expect', 'Upgrade', 'Cookie', 'TE', 'Accept',
  'Accept-Encoding', 'X-HTTP-Method-Override', 'Forwarded', 'x-ms-structured-body', 'x-ms-if-tags',
];

const deep = (/** @type {number} */ depth) => '<a>'.repeat(depth) + '</a>'.repeat(depth);

// biome-ignore format: a table
export const oddDocuments = [
  '', ' ', '<', '<a', '<a>', '<a/>', '</a>', '<a></b>', '<?xml', '<?xml version="1.0"?>', '<?xml version="9"?><a/>',
  '<?xml version="1.0" encoding="utf-16"?><a/>', '<?xml version="1.0" encoding="x"?><BlockList/>',
  '\xef\xbb\xbf<BlockList/>', '\xff\xfe<\0a\0/\0>\0', '\xfe\xff\0<\0a\0/\0>', '<BlockList>', '<BlockList/>',
  '<BlockList><Latest/></BlockList>',
  '<BlockList><Latest>YQ==</Latest><Committed>YQ==</Committed><Uncommitted>!</Uncommitted></BlockList>',
  '<BlockList><Latest><x/></Latest></BlockList>', '<BlockList><Latest>YQ==</Latest></BlockList><BlockList/>',
  '<BlockList xmlns="x:y" a="b"><x:Latest xmlns:x="z">YQ==</x:Latest></BlockList>',
  '<BlockList>text<!-- c --><![CDATA[d]]></BlockList>', '<!DOCTYPE a [<!ENTITY b "c">]><BlockList>&b;</BlockList>',
  '<BlockList>&unknown;&#0;&#xD800;&#x110000;</BlockList>', '<BlockList>&#65;&#x41;</BlockList>',
  '<SignedIdentifiers/>', '<SignedIdentifiers><SignedIdentifier/></SignedIdentifiers>',
  '<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Start>x</Start><Expiry/><Permission>rwz</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>',
  '<StorageServiceProperties/>', '<StorageServiceProperties><Cors><CorsRule/></Cors></StorageServiceProperties>',
  '<StorageServiceProperties><Logging><RetentionPolicy><Days>x</Days></RetentionPolicy></Logging></StorageServiceProperties>',
  '<StorageServiceProperties><DefaultServiceVersion>x</DefaultServiceVersion></StorageServiceProperties>', deep(20),
  deep(500), `<BlockList>${'<Latest>YQ==</Latest>'.repeat(500)}</BlockList>`, `<BlockList a="${'b'.repeat(5_000)}"/>`,
  '\0'.repeat(50), `<${'a'.repeat(5_000)}/>`, '<a b="c" b="d"/>', '<a b=c/>', '<1/>', '<a>\x01</a>', '<a>\xff</a>',
  '<a>]]></a>', '{"a":1}',
];
