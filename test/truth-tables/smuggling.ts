/**
 * Requests that two HTTP parsers could read differently, each followed by a request that must not be run. `by` says which part
 * refuses it: Node's parser, or src/rest/http/connections.ts because the parser lets it through.
 */

export interface Shape {
  readonly name: string;
  readonly bytes: string;
  /** One of these, or this one. */
  readonly status: number | readonly number[];
  readonly by: 'parser' | 'framing';
}

/** An endpoint that needs no signature and takes anything: if the shape got through, it would be answered 204. */
export const FRONT = '/_holdfast/clock/advance?seconds=0';
const LINE = `POST ${FRONT} HTTP/1.1`;
const GET = 'GET /health/live HTTP/1.1';
const CHUNKED = 'Transfer-Encoding: chunked';
const LAST_CHUNK = '0\r\n\r\n';

const head = (...lines: string[]) => `${lines.join('\r\n')}\r\n\r\n`;
const post = (...headers: string[]) => head(LINE, 'Host: x', ...headers);
const put = (...headers: string[]) =>
  head(
    'PUT /devstoreaccount1/container/blob HTTP/1.1',
    'Host: x',
    'x-ms-version: 2021-06-08',
    'x-ms-blob-type: BlockBlob',
    ...headers,
  );
const get = (...headers: string[]) => head(GET, 'Host: x', ...headers);

type Rows = Readonly<Record<string, string>>;
const rows = (by: Shape['by'], status: Shape['status'], shapes: Rows): Shape[] =>
  Object.entries(shapes).map(([name, bytes]) => ({ name, bytes, status, by }));

export const smuggling: readonly Shape[] = [
  ...rows('parser', 400, {
    'Content-Length before Transfer-Encoding': post('Content-Length: 5', CHUNKED) + LAST_CHUNK,
    'Transfer-Encoding before Content-Length': post(CHUNKED, 'Content-Length: 5') + LAST_CHUNK,
    'Content-Length twice, equal': post('Content-Length: 0', 'Content-Length: 0'),
    'Content-Length twice, different': post('Content-Length: 0', 'Content-Length: 40'),
    'Content-Length as a list': post('Content-Length: 0, 0'),
    'Content-Length with a plus': post('Content-Length: +0'),
    'Content-Length with a minus': post('Content-Length: -1'),
    'Content-Length with a space inside': post('Content-Length: 0 0'),
    'Content-Length with a comma behind': post('Content-Length: 0,'),
    'Content-Length in hexadecimal': post('Content-Length: 0x0'),
    'Content-Length with a fraction': post('Content-Length: 0.0'),
    'Content-Length with an exponent': post('Content-Length: 0e0'),
    'Content-Length that is empty': post('Content-Length: '),
    'Content-Length of 2^64': post('Content-Length: 18446744073709551616'),
    'Content-Length behind a vertical tab': post('Content-Length:\x0b0'),
    'Content-Length with a tab behind': post('Content-Length: 0\t'),
    'Content-Length with a space before the colon': post('Content-Length : 0'),
    'Content-Length with a tab before the colon': post('Content-Length\t: 0'),
    'Transfer-Encoding twice': post(CHUNKED, CHUNKED) + LAST_CHUNK,
    'Transfer-Encoding with chunked twice': post('Transfer-Encoding: chunked, chunked') + LAST_CHUNK,
    'Transfer-Encoding with something behind chunked': post('Transfer-Encoding: chunked, gzip') + LAST_CHUNK,
    'Transfer-Encoding with a comma behind chunked': post('Transfer-Encoding: chunked,') + LAST_CHUNK,
    'Transfer-Encoding chunked, and again identity': post(CHUNKED, 'Transfer-Encoding: identity') + LAST_CHUNK,
    'Transfer-Encoding behind a vertical tab': post('Transfer-Encoding:\x0bchunked') + LAST_CHUNK,
    'Transfer-Encoding with a form feed behind': post('Transfer-Encoding: chunked\x0c') + LAST_CHUNK,
    'Transfer-Encoding with a NUL behind': post('Transfer-Encoding: chunked\0') + LAST_CHUNK,
    'Transfer-Encoding on the next line': post('Transfer-Encoding:\r\n chunked') + LAST_CHUNK,
    'Transfer-Encoding with a space before the colon': post('Transfer-Encoding : chunked') + LAST_CHUNK,
    'Transfer-Encoding with a space before the name': post(' Transfer-Encoding: chunked') + LAST_CHUNK,
    'a header that goes on in the next line, behind a space': post('x-ms-meta-a: b', ' c'),
    'a header that goes on in the next line, behind a tab': post('x-ms-meta-a: b', '\tc'),
    'a space before the first header': head(LINE, ' Host: x'),
    'a header without a colon': post('x-ms-meta-a'),
    'a header without a name': post(': a'),
    'a NUL in the name of a header': post('x-ms-meta-\0a: b'),
    'a NUL in the value of a header': post('x-ms-meta-a: b\0c'),
    'a control character in the value of a header': post('x-ms-meta-a: \x01'),
    'a control character in the name of a header': post('x-ms-\x01: a'),
    'a letter beyond ASCII in the name of a header': post('x-ms-meta-\xe9: a'),
    'parentheses in the name of a header': post('x-ms-meta-(a): b'),
    'lines that end with CR': `${LINE}\rHost: x\r\r`,
    'a CR inside of a header': post('x-ms-meta-a: b\rContent-Length: 40'),
    'a CR before the end of a line': `${LINE}\r\nHost: x\r\r\n\r\n`,
    'lines that end with LF': `${LINE}\nHost: x\n\n`,
    'a request line that ends with LF': `${LINE}\nHost: x\r\n\r\n`,
    'a header that ends with LF': `${LINE}\r\nHost: x\nx-ms-meta-a: b\r\n\r\n`,
    'headers that end with LF': `${LINE}\r\nHost: x\r\n\n`,
    'HTTP/1.2': head(GET.replace('1.1', '1.2'), 'Host: x'),
    'HTTP/1.10': head(GET.replace('1.1', '1.10'), 'Host: x'),
    'HTTP without a dot': head(GET.replace('1.1', '11'), 'Host: x'),
    'http in small letters': head(GET.replace('HTTP', 'http'), 'Host: x'),
    'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'tabs in the request line': head(GET.replaceAll(' ', '\t'), 'Host: x'),
    'a space behind the request line': head(`${GET} `, 'Host: x'),
    'a space in the URL': head(GET.replace('live', 'li ve'), 'Host: x'),
    'a NUL in the URL': head(GET.replace('live', 'li\0ve'), 'Host: x'),
    'a letter beyond ASCII in the URL': head(GET.replace('live', 'liv\xe9'), 'Host: x'),
    'a URL of host and port only': head('GET x:80 HTTP/1.1', 'Host: x'),
    'a space before the method': ` ${get()}`,
    'a method in small letters': get().replace('GET', 'get'),
    'a method in mixed letters': get().replace('GET', 'Get'),
    'a method with a NUL': get().replace('GET', 'G\0T'),
    'a method that nobody knows': get().replace('GET', 'FETCH'),
    'a greeting of TLS': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  }),
  ...rows('framing', 400, {
    'Content-Length of 2^64 - 1': post('Content-Length: 18446744073709551615'),
    'Content-Length beyond all numbers that are exact': post('Content-Length: 9007199254740993'),
    'Content-Length with zeros before': post('Content-Length: 0000'),
    'Transfer-Encoding identity': post('Transfer-Encoding: identity'),
    'Transfer-Encoding gzip': post('Transfer-Encoding: gzip'),
    'Transfer-Encoding gzip, chunked': post('Transfer-Encoding: gzip, chunked') + LAST_CHUNK,
    'Transfer-Encoding with a comma before chunked': post('Transfer-Encoding: ,chunked') + LAST_CHUNK,
    'Transfer-Encoding xchunked': post('Transfer-Encoding: xchunked') + LAST_CHUNK,
    'Transfer-Encoding chunkedx': post('Transfer-Encoding: chunkedx') + LAST_CHUNK,
    'Transfer-Encoding in quotes': post('Transfer-Encoding: "chunked"') + LAST_CHUNK,
    'Transfer-Encoding with a parameter': post('Transfer-Encoding: chunked;q=1') + LAST_CHUNK,
    'Transfer-Encoding that is empty': post('Transfer-Encoding: '),
    'Transfer-Encoding in HTTP/1.0':
      head(LINE.replace('1.1', '1.0'), 'Host: x', 'Connection: keep-alive', CHUNKED) + LAST_CHUNK,
    'HTTP/0.9': 'GET /health/live\r\n\r\n',
    'HTTP/0.9 with its number': head(GET.replace('1.1', '0.9'), 'Host: x'),
    'HTTP/2.0': head(GET.replace('1.1', '2.0'), 'Host: x'),
    'Host twice, different': head(GET, 'Host: x', 'Host: y'),
    'Host twice, equal': head(GET, 'Host: x', 'hOST: x'),
    'no Host': head(GET),
    'Host that is empty': head(GET, 'Host:'),
    'Host with a path': head(GET, 'Host: x/y'),
    'Host with a user': head(GET, 'Host: y@x'),
    'Host with a space': head(GET, 'Host: x y'),
    'Host as a list': head(GET, 'Host: x, y'),
    'Host with a port that is none': head(GET, 'Host: x:80a'),
    'a URL for another host': head(GET.replace('/', 'http://other/'), 'Host: x'),
    'a URL with a user': head(GET.replace('/', 'http://x@other/'), 'Host: x'),
    'a URL of another protocol': head(GET.replace('/', 'ftp://x/'), 'Host: x'),
    'a URL with a fragment': head(GET.replace('live', 'live#here'), 'Host: x'),
    'GET of an asterisk': head('GET * HTTP/1.1', 'Host: x'),
    'OPTIONS of an asterisk': head('OPTIONS * HTTP/1.1', 'Host: x'),
    'GET with a body': `${get('Content-Length: 4')}body`,
    'HEAD with a body': `${get('Content-Length: 4').replace('GET', 'HEAD')}body`,
    'DELETE with a body': `${get('Content-Length: 4').replace('GET', 'DELETE')}body`,
    'GET with chunks and HTTP/1.0': head(GET.replace('1.1', '1.0'), 'Host: x', CHUNKED) + LAST_CHUNK,
    'OPTIONS with a body': `${get('Content-Length: 4').replace('GET', 'OPTIONS')}body`,
  }),
  // Azure takes no body without a length: a signed request gets 411.
  ...rows('framing', 401, {
    'Transfer-Encoding chunked': put(CHUNKED) + LAST_CHUNK,
    'Transfer-Encoding Chunked': put('TRANSFER-ENCODING: cHuNkEd') + LAST_CHUNK,
    'Transfer-Encoding behind a tab': put('Transfer-Encoding:\tchunked') + LAST_CHUNK,
    'a chunk with an extension': `${put(CHUNKED)}0;a=b\r\n\r\n`,
  }),
  // With their headers these are answered, if those come alone; with their bodies they are refused.
  ...rows('parser', [400, 401], {
    'a chunk size with a plus': `${put(CHUNKED)}+${LAST_CHUNK}`,
    'a chunk size with a minus': `${put(CHUNKED)}-${LAST_CHUNK}`,
    'a chunk size with 0x': `${put(CHUNKED)}0x${LAST_CHUNK}`,
    'a chunk size behind a space': `${put(CHUNKED)} ${LAST_CHUNK}`,
    'a chunk size with a space behind': `${put(CHUNKED)}0 \r\n\r\n`,
    'a chunk size that is missing': `${put(CHUNKED)}\r\n\r\n`,
    'a chunk size of 2^64': `${put(CHUNKED)}10000000000000000\r\n\r\n`,
    'a chunk with a CR in its extension': `${put(CHUNKED)}0;a\rb\r\n\r\n`,
    'a chunk with a LF in its extension': `${put(CHUNKED)}0;a\nb\r\n\r\n`,
    'a chunk size that ends with LF': `${put(CHUNKED)}0\n\n`,
    'a chunk without its CRLF': `${put(CHUNKED)}1\r\na${LAST_CHUNK}`,
    'a chunk that ends with LF': `${put(CHUNKED)}1\r\na\n${LAST_CHUNK}`,
    'a chunk with more bytes than it says': `${put(CHUNKED)}1\r\nabc\r\n${LAST_CHUNK}`,
    'a trailer with Content-Length': `${put(CHUNKED, 'Trailer: Content-Length')}0\r\nContent-Length: 40\r\n\r\n`,
    'a trailer with Transfer-Encoding': `${put(CHUNKED)}0\r\n${CHUNKED}\r\n\r\n`,
  }),
  ...rows('framing', 405, {
    CONNECT: head('CONNECT x:80 HTTP/1.1', 'Host: x'),
    TRACE: head(GET.replace('GET', 'TRACE'), 'Host: x'),
  }),
  ...rows('framing', 414, { 'a URL of 40,000 bytes': head(GET.replace('live', 'l'.repeat(40_000)), 'Host: x') }),
  ...rows('parser', 431, { 'headers of 70,000 bytes': get(`x-ms-meta-a: ${'a'.repeat(70_000)}`) }),
  ...rows('framing', 417, { 'an expectation that nobody can meet': post('Expect: 200-ok', 'Content-Length: 0') }),
];

/** Odd, but unambiguous: the bytes that follow are a request of their own. */
export const unambiguous: Readonly<Record<string, string>> = {
  'Content-Length behind a tab': post('Content-Length:\t0'),
  'Content-Length with an underscore, a header like any other': post('Content_Length: 40'),
  'GET with Content-Length: 0': get('Content-Length: 0'),
  'empty lines before a request': `\r\n\r\n${get()}`,
  'two spaces in the request line': get().replace(' /', '  /'),
  'a URL with the host of the header': head(GET.replace('/', 'http://X/'), 'Host: x'),
  'Host with an address and a port': head(GET, 'Host: [::1]:10000'),
  'Host with an underscore, as containers have it': head(GET, 'Host: my_azurite:10000'),
};

/** Answered as if no upgrade were requested, and then closed: clients of Java request HTTP/2 in this way. */
export const upgrades: Readonly<Record<string, string>> = {
  'an upgrade to HTTP/2': get(
    'Connection: Upgrade, HTTP2-Settings',
    'Upgrade: h2c',
    'HTTP2-Settings: AAMAAABkAAQAAP__',
  ),
  'an upgrade to WebSocket': get('Connection: Upgrade', 'Upgrade: websocket'),
  'an upgrade behind a body': `${post('Connection: Upgrade', 'Upgrade: h2c', 'Content-Length: 4')}body`,
};
