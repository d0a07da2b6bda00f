/** Requests whose canonical form is hard to compute alike: the bytes on the wire. Paths begin after the account. */

export interface SigningShape {
  readonly what: string;
  readonly method?: string;
  /** Every character is a byte. */
  readonly path: string;
  /** Besides Host, x-ms-version and a date. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  /** Which header carries the date; x-ms-date by default. */
  readonly dated?: 'Date' | 'both';
  readonly body?: string;
  /** The client signs UTF-8 of the characters that it sends as Latin-1. */
  readonly signedAsUtf8?: true;
  /** Refused with this status before authentication, by Node's parser or for its address. */
  readonly refused?: { readonly status: number; readonly by: 'parser' | 'address' };
}

const utf8 = (text: string) => Buffer.from(text).toString('latin1');
const BLOB = '/shapes/blob';
const LIST = '/shapes?restype=container&comp=list';

const paths: SigningShape[] = [
  { what: 'a plain name', path: BLOB },
  { what: 'the account alone', path: '/?comp=list' },
  { what: 'the account without a slash', path: '?comp=list' },
  { what: 'a container', path: '/shapes?restype=container' },
  { what: 'a container with a slash behind', path: '/shapes/?restype=container' },
  { what: 'an encoded slash', path: '/shapes/a%2Fb' },
  { what: 'an encoded slash in lower case', path: '/shapes/a%2fb' },
  { what: 'an encoded backslash', path: '/shapes/a%5Cb' },
  { what: 'a raw backslash', path: '/shapes/a\\b' },
  { what: 'two slashes', path: '/shapes/a//b' },
  { what: 'slashes at the beginning', path: '/shapes//a' },
  { what: 'a slash at the end', path: '/shapes/a/' },
  { what: 'slashes only', path: '/shapes////' },
  { what: 'a segment of one dot', path: '/shapes/a/./b' },
  { what: 'a segment of two dots', path: '/shapes/a/../b' },
  { what: 'dots that would leave the container', path: '/shapes/../../b' },
  { what: 'encoded dots', path: '/shapes/%2e%2E/b' },
  { what: 'a dot at the end', path: '/shapes/a.' },
  { what: 'a plus', path: '/shapes/a+b' },
  { what: 'an encoded plus', path: '/shapes/a%2Bb' },
  { what: 'an encoded space', path: '/shapes/a%20b' },
  { what: 'double encoding', path: '/shapes/a%2520b' },
  { what: 'double encoding of a slash', path: '/shapes/a%252Fb' },
  { what: 'an encoded percent alone', path: '/shapes/100%25' },
  { what: 'encoded letters', path: '/shapes/%62%6C%6f%62' },
  { what: 'characters that need no encoding', path: "/shapes/a-._~!$&'()*,;=:@b" },
  { what: 'the same, encoded', path: '/shapes/%21%24%26%27%28%29%2A%2C%3B%3D%3A%40' },
  { what: 'an encoded question mark and hash', path: '/shapes/a%3Fb%23c' },
  { what: 'raw brackets and quotes', path: '/shapes/a[b]{c}|"<>^`' },
  { what: 'encoded non-ASCII', path: '/shapes/%C3%BC%E4%BD%A0' },
  { what: 'an encoded emoji', path: '/shapes/%F0%9F%98%80' },
  { what: 'raw non-ASCII in UTF-8', path: `/shapes/${utf8('ünï')}`, refused: { status: 400, by: 'parser' } },
  { what: 'raw Latin-1', path: '/shapes/\xfcn', refused: { status: 400, by: 'parser' } },
  { what: 'raw and encoded non-ASCII', path: `/shapes/${utf8('ü')}%C3%BC`, refused: { status: 400, by: 'parser' } },
  { what: 'a decomposed letter', path: '/shapes/u%CC%88' },
  { what: 'an encoded line end', path: '/shapes/a%0D%0Ab' },
  { what: 'a long name', path: `/shapes/${'a/'.repeat(400)}b` },
  { what: 'a lone surrogate', path: '/shapes/%ED%A0%80', refused: { status: 400, by: 'address' } },
  { what: 'a byte that is no UTF-8', path: '/shapes/%FF', refused: { status: 400, by: 'address' } },
  { what: 'a percent without digits', path: '/shapes/100%', refused: { status: 400, by: 'address' } },
  { what: 'a percent with one digit', path: '/shapes/100%2', refused: { status: 400, by: 'address' } },
  { what: 'a raw space', path: '/shapes/a b', refused: { status: 400, by: 'parser' } },
  { what: 'a raw tab', path: '/shapes/a\tb', refused: { status: 400, by: 'parser' } },
];

const queries: SigningShape[] = [
  { what: 'names in mixed case', path: '/shapes?RESTYPE=container&Comp=list' },
  { what: 'values in mixed case', path: `${BLOB}?timeout=30&Foo=BaR` },
  { what: 'a parameter that is repeated', path: `${LIST}&x=b&x=a&X=c` },
  { what: 'a parameter that is repeated with the same value', path: `${LIST}&x=a&x=a` },
  { what: 'encoded names', path: '/shapes?rest%79pe=container&%63omp=list' },
  { what: 'encoded values', path: `${LIST}&prefix=a%2Fb%20c%26d%3De` },
  { what: 'a double encoded value', path: `${LIST}&prefix=a%252Fb` },
  { what: 'a plus for a space', path: `${LIST}&prefix=a+b` },
  { what: 'an encoded plus', path: `${LIST}&prefix=a%2Bb` },
  { what: 'an empty query', path: `${BLOB}?` },
  { what: 'an empty value', path: `${LIST}&prefix=` },
  { what: 'a name without a value', path: `${LIST}&prefix` },
  { what: 'empty parts', path: '/shapes?&restype=container&&comp=list&' },
  { what: 'a value with equals signs', path: `${LIST}&prefix=a=b==` },
  { what: 'a second question mark', path: `${LIST}&prefix=a?b` },
  { what: 'encoded non-ASCII', path: `${LIST}&prefix=%C3%BC` },
  { what: 'raw non-ASCII in UTF-8', path: `${LIST}&prefix=${utf8('ü')}`, refused: { status: 400, by: 'parser' } },
  { what: 'a name whose order depends on the way to compare', path: `${LIST}&a_b=1&ab=2&a-b=3&a.b=4` },
  { what: 'a comp that is no operation', path: `${BLOB}?comp=%6Dystery` },
  { what: 'an encoded line end', path: `${LIST}&prefix=a%0Ab` },
  { what: 'a lone surrogate', path: `${LIST}&prefix=%ED%A0%80`, refused: { status: 400, by: 'address' } },
];

const headers: SigningShape[] = [
  { what: 'space before a value', path: BLOB, headers: [['x-ms-client-request-id', '    one']] },
  { what: 'space behind a value', path: BLOB, headers: [['x-ms-client-request-id', 'one   ']] },
  { what: 'space inside a value', path: BLOB, headers: [['x-ms-client-request-id', 'one   two']] },
  { what: 'tabs around and inside a value', path: BLOB, headers: [['x-ms-client-request-id', '\tone\ttwo\t']] },
  { what: 'an empty value', path: BLOB, headers: [['x-ms-client-request-id', '']] },
  { what: 'a value of space', path: BLOB, headers: [['x-ms-client-request-id', '   ']] },
  {
    what: 'names in mixed case',
    path: BLOB,
    headers: [
      ['X-MS-Client-Request-ID', 'one'],
      ['x-Ms-META-a', 'two'],
    ],
  },
  {
    what: 'a header that is repeated',
    path: BLOB,
    headers: [
      ['x-ms-meta-a', 'one'],
      ['x-ms-meta-a', 'two'],
    ],
  },
  {
    what: 'a header that is repeated apart and in another case',
    path: BLOB,
    headers: [
      ['x-ms-meta-b', 'one'],
      ['x-ms-meta-a', 'x'],
      ['X-Ms-Meta-B', ' two '],
    ],
  },
  {
    what: 'names whose order depends on the way to compare',
    path: BLOB,
    headers: [
      ['x-ms-meta-ab', '1'],
      ['x-ms-meta-a_b', '2'],
      ['x-ms-meta-a1', '3'],
      ['x-ms-meta-a', '4'],
      ['x-ms-meta-b', '5'],
    ],
  },
  { what: 'a comma and a colon in a value', path: BLOB, headers: [['x-ms-meta-a', 'one, two: three']] },
  { what: 'non-ASCII in UTF-8', path: BLOB, headers: [['x-ms-client-request-id', utf8('é€')]] },
  { what: 'Latin-1, signed as UTF-8', path: BLOB, headers: [['x-ms-client-request-id', '\xe9']], signedAsUtf8: true },
  {
    what: 'a no-break space at the end',
    path: BLOB,
    headers: [['x-ms-client-request-id', 'one\xa0']],
    signedAsUtf8: true,
  },
  { what: 'a length of 0', method: 'PUT', path: '/shapes/blob?comp=metadata', headers: [['Content-Length', '0']] },
  {
    what: 'a body with its type, language and encoding',
    method: 'PUT',
    path: BLOB,
    body: 'content',
    headers: [
      ['Content-Length', '7'],
      ['Content-Type', 'text/plain; charset=utf-8'],
      ['Content-Language', 'en'],
      ['Content-Encoding', 'identity'],
      ['x-ms-blob-type', 'BlockBlob'],
    ],
  },
  {
    what: 'a body with its hash',
    method: 'PUT',
    path: BLOB,
    body: 'content',
    headers: [
      ['Content-Length', '7'],
      ['Content-MD5', 'mgNkuembtIDdJeHwKEyFVQ=='],
      ['x-ms-blob-type', 'BlockBlob'],
    ],
  },
  { what: 'a range', path: BLOB, headers: [['Range', 'bytes=0-1']] },
  {
    what: 'a range in both headers',
    path: BLOB,
    headers: [
      ['Range', 'bytes=0-1'],
      ['x-ms-range', 'bytes=2-3'],
    ],
  },
  {
    what: 'conditions',
    path: BLOB,
    headers: [
      ['If-Match', '"0x8D"'],
      ['If-None-Match', '*'],
      ['If-Modified-Since', 'Wed, 01 May 2019 10:20:30 GMT'],
      ['If-Unmodified-Since', 'Wed, 01 May 2019 10:20:30 GMT'],
    ],
  },
  { what: 'Date instead of x-ms-date', path: BLOB, dated: 'Date' },
  { what: 'Date beside x-ms-date', path: BLOB, dated: 'both' },
  { what: 'HEAD', method: 'HEAD', path: BLOB },
  { what: 'DELETE', method: 'DELETE', path: BLOB },
  {
    what: 'headers that are not signed',
    path: BLOB,
    headers: [
      ['X-Forwarded-For', '1.2.3.4'],
      ['Accept', '*/*'],
      ['x-msx', 'a'],
    ],
  },
  {
    what: 'a value that is folded over two lines',
    path: BLOB,
    headers: [['x-ms-client-request-id', 'one\r\n two']],
    refused: { status: 400, by: 'parser' },
  },
  {
    what: 'space before the colon',
    path: BLOB,
    headers: [['x-ms-meta-a ', 'one']],
    refused: { status: 400, by: 'parser' },
  },
  {
    what: 'a control character',
    path: BLOB,
    headers: [['x-ms-meta-a', 'a\x01b']],
    refused: { status: 400, by: 'parser' },
  },
];

export const signingShapes: Readonly<Record<'path' | 'query' | 'header', readonly SigningShape[]>> = {
  path: paths,
  query: queries,
  header: headers,
};

/** Names of blobs as a SAS signs them, and how they stand in the path. */
export const sasNames: readonly (readonly [name: string, path: string])[] = [
  ['plain', 'plain'],
  ['a/b', 'a/b'],
  ['a/b', 'a%2Fb'],
  // Azure takes a backslash for a slash.
  ['a/b', 'a%5Cb'],
  ['a/b', 'a\\b'],
  ['a//b', 'a//b'],
  ['/a', '/a'],
  ['a/', 'a/'],
  ['a/./b/../c', 'a/./b/../c'],
  ['a/../b', 'a/%2e%2e/b'],
  ['a+b', 'a+b'],
  ['a+b', 'a%2Bb'],
  ['a b', 'a%20b'],
  ['a%20b', 'a%2520b'],
  ['ünï你😀', '%C3%BCn%C3%AF%E4%BD%A0%F0%9F%98%80'],
  ['q?&=#', 'q%3F%26%3D%23'],
  ["'()*!~", "'()*!~"],
  ['a\nb', 'a%0Ab'],
];
